// The real fingerpostd, seen from where its administrator, systemd and its signals stand.
#include <doctest/doctest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "reader/reader.h"
#include "tests/daemon_process.h"
#include "tests/sample_directory.h"

using namespace fingerpost;

namespace {

constexpr const char* kOtherDirectoryId = "0f000000-0000-4000-8000-000000000002";

// A directory, a state folder, a place for the segment, and the arguments that name them.
class Host {
 public:
  Host() {
    make_sample_directory(directory());
    SqliteDb db(directory(), SqliteDb::Mode::read_write);
    put_tenant(db, "acme", "alpha");
  }

  std::string directory() const { return files_.file("directory.db"); }
  std::string segment() const { return shm_.file("seg"); }
  std::string config() const { return files_.file("d.toml"); }
  std::string file(const std::string& name) const { return files_.file(name); }

  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"--name",    segment(),     "--directory",
                                    directory(), "--state-dir", files_.file("state")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void write_config(const std::string& text) const {
    std::ofstream(config(), std::ios::trunc) << text;
  }
  bool answers(const std::string& shard) const {
    return eventually([&] {
      const auto reader = Reader::open(segment());
      return reader.ok() && reader->resolve("acme").found() &&
             reader->resolve("acme").shard().name() == shard;
    });
  }

 private:
  TempFolder files_;
  TempFolder shm_{"/dev/shm"};
};

// The service manager's end.
class NotifySocket {
 public:
  NotifySocket() {
    fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }
  ~NotifySocket() { ::close(fd_); }

  std::string path() const { return folder_.file("notify"); }

  // Everything that was said so far, in order.
  const std::vector<std::string>& heard() {
    char bytes[4'096];
    for (ssize_t n = 0; (n = ::recv(fd_, bytes, sizeof bytes, 0)) > 0;)
      heard_.emplace_back(bytes, static_cast<std::size_t>(n));
    return heard_;
  }
  std::size_t count(const std::string& line) {
    heard();
    return static_cast<std::size_t>(std::ranges::count(heard_, line));
  }
  bool has_status(const std::string& part) {
    return std::ranges::any_of(heard(), [&](const std::string& line) {
      return line.starts_with("STATUS=") && line.find(part) != std::string::npos;
    });
  }

 private:
  TempFolder folder_;
  int fd_ = -1;
  std::vector<std::string> heard_;
};

}  // namespace

TEST_CASE("READY=1 is said once, when workers find a segment to rely on, and not before") {
  const Host host;
  std::filesystem::rename(host.directory(), host.file("hidden.db"));
  NotifySocket manager;
  DaemonProcess daemon(host.arguments({"--poll-interval", "50ms"}),
                       {{{"NOTIFY_SOCKET", manager.path()}}, {}});
  REQUIRE(eventually([&] { return manager.has_status("waiting for the directory"); }));
  CHECK(eventually([&] { return manager.has_status(host.directory()); }));  // says for which
  CHECK(manager.count("READY=1") == 0);
  std::filesystem::rename(host.file("hidden.db"), host.directory());
  REQUIRE(eventually([&] { return manager.count("READY=1") == 1; }));
  const auto reader = Reader::open(host.segment());
  REQUIRE(reader.ok());
  CHECK(reader->ready());
  CHECK(reader->resolve("acme").shard().name() == "alpha");
  CHECK(manager.has_status("serving 1 entries"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(daemon.stop() == 0);
  CHECK(manager.count("READY=1") == 1);
  CHECK(manager.count("STOPPING=1") == 1);
  CHECK(manager.count("WATCHDOG=1") == 0);  // nobody asked for it
}

TEST_CASE("an empty directory is ready") {
  const Host host;
  std::filesystem::remove(host.directory());
  make_sample_directory(host.directory());
  NotifySocket manager;
  DaemonProcess daemon(host.arguments(), {{{"NOTIFY_SOCKET", manager.path()}}, {}});
  CHECK(eventually([&] { return manager.count("READY=1") == 1; }));
  CHECK(manager.has_status("serving 0 entries"));
  CHECK(daemon.stop() == 0);
}

TEST_CASE("the watchdog goes on while the loop does, and falls silent when it alone stands still") {
  const Host host;
  NotifySocket manager;
  DaemonProcess daemon(host.arguments(),
                       {{{"NOTIFY_SOCKET", manager.path()}, {"WATCHDOG_USEC", "4000000"}}, {}});
  REQUIRE(eventually([&] { return manager.count("READY=1") == 1; }));
  REQUIRE(eventually([&] { return manager.count("WATCHDOG=1") >= 3; }));
  // Only the thread that loops: the one that judges it runs on.
  REQUIRE(::ptrace(PTRACE_SEIZE, daemon.pid(), nullptr, nullptr) == 0);
  REQUIRE(::ptrace(PTRACE_INTERRUPT, daemon.pid(), nullptr, nullptr) == 0);
  REQUIRE(::waitpid(daemon.pid(), nullptr, 0) == daemon.pid());
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));  // a look may be due already
  const std::size_t before = manager.count("WATCHDOG=1");
  std::this_thread::sleep_for(std::chrono::milliseconds(2'200));
  CHECK(manager.count("WATCHDOG=1") == before);
  REQUIRE(::ptrace(PTRACE_DETACH, daemon.pid(), nullptr, nullptr) == 0);
  CHECK(eventually([&] { return manager.count("WATCHDOG=1") > before; }));
  CHECK(daemon.stop() == 0);
}

TEST_CASE("the watchdog of another process is none of ours") {
  const Host host;
  NotifySocket manager;
  DaemonProcess daemon(
      host.arguments(),
      {{{"NOTIFY_SOCKET", manager.path()}, {"WATCHDOG_USEC", "100000"}, {"WATCHDOG_PID", "1"}},
       {}});
  REQUIRE(eventually([&] { return manager.count("READY=1") == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(manager.count("WATCHDOG=1") == 0);
}

TEST_CASE("a service manager that does not read, or is no socket, costs nothing") {
  const Host host;
  DaemonProcess daemon(host.arguments(), {{{"NOTIFY_SOCKET", "tcp:1"}}, {}});
  CHECK(daemon.waits_to_log("NOTIFY_SOCKET is 'tcp:1'"));
  CHECK(host.answers("alpha"));
  CHECK(daemon.stop() == 0);
}

TEST_CASE("SIGHUP takes over what is live, refuses the rest by name, and nothing of a bad file") {
  const Host host;
  host.write_config("stale_after = \"1h\"\n");
  DaemonProcess daemon(host.arguments({"--config", host.config()}));
  REQUIRE(host.answers("alpha"));
  const auto reader = Reader::open(host.segment());
  REQUIRE(reader.ok());
  CHECK(eventually([&] { return !reader->stale(); }));

  host.write_config("stale_after = 0\nlog_format = \"json\"\ncapacity = 5\nname = \"other\"\n");
  daemon.signal(SIGHUP);
  REQUIRE(daemon.waits_to_log("\"message\":\"SIGHUP: read " + host.config() + " again\""));
  CHECK(reader->stale());
  CHECK(daemon.log_count("SIGHUP: capacity stays its default: only a restart makes it '5'") == 1);
  CHECK(daemon.log_count("SIGHUP: name") == 0);  // a flag gave it, and still does

  host.write_config("stale_after = \"1h\"\nlog_fromat = \"text\"\n");
  daemon.signal(SIGHUP);
  REQUIRE(daemon.waits_to_log("everything stays as it was"));
  CHECK(daemon.log_count(host.config() + ":2: log_fromat: there is no such key") == 1);
  CHECK(reader->stale());
  CHECK(daemon.stop() == 0);
}

TEST_CASE("without a file SIGHUP is answered, and does not kill") {
  const Host host;
  DaemonProcess daemon(host.arguments());
  REQUIRE(host.answers("alpha"));
  daemon.signal(SIGHUP);
  CHECK(daemon.waits_to_log("it was started without --config"));
  CHECK(daemon.stop() == 0);
}

TEST_CASE("a storm of a thousand signals changes nothing but a few lines of log") {
  const Host host;
  host.write_config("");
  DaemonProcess daemon(host.arguments({"--config", host.config()}));
  REQUIRE(host.answers("alpha"));
  for (int i = 0; i < 1'000; ++i) {
    daemon.signal(SIGHUP);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  const auto reader = Reader::open(host.segment());
  REQUIRE(reader.ok());
  CHECK(eventually([&] { return reader->ready() && !reader->stale(); }));
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) daemon.signal(i % 2 == 0 ? SIGTERM : SIGHUP);
  CHECK(daemon.end() == 0);
  CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(5));
  CHECK(daemon.log_count("SIGHUP: read") >= 1);
  CHECK(daemon.log_count("SIGHUP: read") <= 10);
}

TEST_CASE("what makes no sense is told, and the exit status is 2") {
  const Host host;
  const auto check = [&](const std::vector<std::string>& arguments, const std::string& message) {
    DaemonProcess daemon(arguments);
    CHECK(daemon.end() == 2);
    CHECK_MESSAGE(daemon.log().find("fingerpostd: " + message) != std::string::npos, daemon.log());
    CHECK(!std::filesystem::exists(host.segment()));
  };
  check({"--config", host.file("absent.toml")}, "cannot read " + host.file("absent.toml"));
  std::filesystem::create_directory(host.file("folder"));
  check({"--config", host.file("folder")},
        "cannot read " + host.file("folder") + ": it is a folder");
  check({"--name", "x"}, "there is no directory: give --directory");
  check(host.arguments({"--capacity", "0"}), "--capacity: '0' is no number from 1");
  check(host.arguments({"--accept-directory", "mine"}),
        "--accept-directory: 'mine' is no directory's id");
  host.write_config("name = \"x\"\nspeed = 3\n");
  check(host.arguments({"--config", host.config()}),
        host.config() + ":2: speed: there is no such key");
  host.write_config("name = \"x\"\n");
  check({"--config", host.config()},
        "there is no state_dir: give --state-dir, or put it into " + host.config());
}

TEST_CASE("a configuration is checked without being used") {
  const Host host;
  host.write_config("poll_interval = \"2s\"\n");
  DaemonProcess good(host.arguments({"--config", host.config(), "--check-config"}));
  CHECK(good.end() == 0);
  CHECK(good.log() == host.config() + ": nothing wrong\n");
  host.write_config("poll_interval = \"2 s\"\n");
  DaemonProcess bad(host.arguments({"--config", host.config(), "--check-config"}));
  CHECK(bad.end() == 2);
  CHECK(bad.log_count(host.config() + ":1: poll_interval: '2 s' is no duration") == 1);
  // What a start would refuse without looking at anything.
  const auto wrong = [&](const std::vector<std::string>& given, const std::string& message) {
    std::vector<std::string> arguments = given;
    arguments.insert(arguments.end(), {"--check-config", "--state-dir", host.file("state")});
    DaemonProcess daemon(arguments);
    CHECK(daemon.end() == 2);
    CHECK_MESSAGE(daemon.log().find("fingerpostd: " + message) != std::string::npos, daemon.log());
  };
  wrong({"--name", ".orders", "--directory", "x.db"}, "--name: ");
  wrong({"--name", "orders.lock", "--directory", "x.db"}, "--name: ");
  wrong({"--name", "orders", "--directory", "mysql://x"},
        "--directory: directory 'mysql://x': the scheme 'mysql' is not known");
  wrong({"--name", "orders", "--directory", "x.db", "--mode", "0666"},
        "--mode: '0666': a segment is read and written by its owner");
  CHECK(!std::filesystem::exists(host.segment()));
}

TEST_CASE("flags win over the file, which wins over defaults") {
  const Host host;
  host.write_config("name = \"/nonexistent/x\"\nmode = \"0644\"\n");
  DaemonProcess daemon(host.arguments({"--config", host.config()}));
  REQUIRE(host.answers("alpha"));
  struct stat info {};
  REQUIRE(::stat(host.segment().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0644);
  CHECK(daemon.stop() == 0);
}

TEST_CASE("every line of a JSON log is an object, whatever a path holds; a text log stays a line") {
  const Host host;
  const std::string awkward = host.file("a\"b\nc\\d\xff");
  const auto lines_of = [&](const std::string& format) {
    DaemonProcess daemon({"--name", host.segment(), "--directory", awkward, "--state-dir",
                          host.file("state"), "--log-format", format});
    CHECK(daemon.waits_to_log("the source does not serve"));
    CHECK(daemon.stop() == 0);
    std::vector<std::string> lines;
    std::istringstream text(daemon.log());
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
  };
  bool named = false;
  for (const std::string& line : lines_of("json")) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    REQUIRE_MESSAGE(object.is_object(), line);
    CHECK(object.contains("time"));
    CHECK(object.contains("level"));
    named |= object.at("message").get<std::string>().find("a\"b\nc\\d") != std::string::npos;
  }
  CHECK(named);
  for (const std::string& line : lines_of("text")) CHECK_MESSAGE(line.starts_with("20"), line);
}

TEST_CASE("below its level nothing is logged") {
  const Host host;
  DaemonProcess daemon(host.arguments({"--log-level", "warning"}));
  REQUIRE(host.answers("alpha"));
  CHECK(daemon.stop() == 0);
  CHECK(daemon.log().empty());
}

TEST_CASE("a start that waits for its jitter can be stopped") {
  const Host host;
  DaemonProcess daemon(host.arguments({"--start-jitter", "24h"}));
  CHECK(daemon.waits_to_log("start jitter: waits for"));
  CHECK(!std::filesystem::exists(host.segment()));
  CHECK(daemon.stop() == 0);
}

TEST_CASE("locked is what is allocated, and no hole") {
  const Host host;
  DaemonProcess daemon(host.arguments({"--lock-memory", "try"}));
  REQUIRE(host.answers("alpha"));
  struct stat info {};
  REQUIRE(::stat(host.segment().c_str(), &info) == 0);
  const auto allocated = static_cast<std::uint64_t>(info.st_blocks) / 2;
  CHECK(eventually([&] { return kib_of(daemon.pid(), "VmLck") == allocated; }));
  CHECK(allocated < 16'384);
  CHECK(daemon.stop() == 0);
}

TEST_CASE("memory that may not be locked is served all the same, after one line") {
  if (::geteuid() != 0) {
    MESSAGE("not tried: only root can give up root's right to lock memory");
    return;
  }
  const Host host;
  DaemonProcess daemon(host.arguments({"--lock-memory", "try"}),
                       {{}, [] {
                          const rlimit limit{4'096, 4'096};
                          ::setrlimit(RLIMIT_MEMLOCK, &limit);
                          ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
                        }});
  REQUIRE(host.answers("alpha"));
  CHECK(daemon.waits_to_log("(RLIMIT_MEMLOCK is 4,096)"));
  std::this_thread::sleep_for(std::chrono::milliseconds(1'200));
  CHECK(daemon.log_count("RLIMIT_MEMLOCK") == 1);
  CHECK(kib_of(daemon.pid(), "VmLck") == 0);
  CHECK(daemon.stop() == 0);
}

TEST_CASE("--rebuild replaces the segment under its workers") {
  const Host host;
  DaemonProcess first(host.arguments());
  REQUIRE(host.answers("alpha"));
  const auto reader = Reader::open(host.segment());
  REQUIRE(reader.ok());
  const std::uint64_t incarnation = reader->status().incarnation;
  struct stat before {};
  ::stat(host.segment().c_str(), &before);
  CHECK(first.stop() == 0);

  DaemonProcess second(host.arguments({"--rebuild"}));
  CHECK(eventually([&] {
    reader->poll();
    return reader->status().incarnation > incarnation;
  }));
  CHECK(reader->resolve("acme").shard().name() == "alpha");
  struct stat after {};
  ::stat(host.segment().c_str(), &after);
  CHECK(after.st_ino != before.st_ino);
  CHECK(eventually([&] { return reader->ready() && !reader->stale(); }));
  CHECK(second.log_count("building " + host.segment() + " anew") == 1);
  CHECK(second.stop() == 0);
}

TEST_CASE("--rebuild loads no snapshot, and keeps serving while the directory is away") {
  const Host host;
  DaemonProcess first(host.arguments());
  REQUIRE(host.answers("alpha"));
  CHECK(first.stop() == 0);
  std::filesystem::rename(host.directory(), host.file("hidden.db"));
  DaemonProcess second(host.arguments({"--rebuild", "--poll-interval", "50ms"}));
  CHECK(second.waits_to_log("adopted"));
  CHECK(host.answers("alpha"));
  std::filesystem::rename(host.file("hidden.db"), host.directory());
  CHECK(second.waits_to_log("anew"));
  CHECK(second.stop() == 0);

  std::filesystem::remove(host.segment());
  DaemonProcess third(host.arguments({"--rebuild"}));
  CHECK(host.answers("alpha"));
  CHECK(third.log_count("loading snapshot") == 0);
  CHECK(third.stop() == 0);
}

TEST_CASE("a name moves to another directory only where its id was given") {
  const Host host;
  DaemonProcess first(host.arguments());
  REQUIRE(host.answers("alpha"));
  const auto reader = Reader::open(host.segment());
  REQUIRE(reader.ok());
  CHECK(first.stop() == 0);
  std::filesystem::remove(host.directory());
  for (const char* ending : {"-wal", "-shm"}) std::filesystem::remove(host.directory() + ending);
  make_sample_directory(host.directory(), kOtherDirectoryId);
  {
    SqliteDb db(host.directory(), SqliteDb::Mode::read_write);
    put_tenant(db, "acme", "beta");
  }

  DaemonProcess refused(host.arguments());
  CHECK(refused.end() == 3);
  CHECK(refused.log_count(kSampleDirectoryId) == 1);
  CHECK(refused.log_count(kOtherDirectoryId) == 1);
  CHECK(refused.log_count("--accept-directory") == 1);
  DaemonProcess mistaken(host.arguments({"--accept-directory", kSampleDirectoryId}));
  CHECK(mistaken.end() == 3);
  CHECK(host.answers("alpha"));

  DaemonProcess accepted(host.arguments({"--accept-directory", kOtherDirectoryId}));
  CHECK(host.answers("beta"));
  // Who mapped the old one stays with it: its ids are those of another directory.
  reader->poll();
  CHECK(reader->resolve("acme").shard().name() == "alpha");
  CHECK(accepted.stop() == 0);
  DaemonProcess again(host.arguments());
  CHECK(host.answers("beta"));
  CHECK(again.waits_to_log("adopted"));
  CHECK(again.stop() == 0);
}
