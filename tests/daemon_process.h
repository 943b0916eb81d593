<<<<<<< HEAD
// fingerpostd as a process of its own: its log is caught, and it does not outlive the test.
=======
// The real programs for a test: a directory in SQLite, fingerpostd in a process of its own, and the
// folders of both, gone when the test ends. What a daemon says goes to a file that the test reads.
>>>>>>> de910fd (Test the real daemon with everything it stands on taken away in turn)
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
<<<<<<< HEAD
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
=======
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
>>>>>>> de910fd (Test the real daemon with everything it stands on taken away in turn)
#include <sstream>
#include <string>
#include <thread>
#include <vector>

<<<<<<< HEAD
=======
#include "reader/reader.h"
#include "shm/counters.h"
#include "shm/hash.h"
#include "tests/run_program.h"
#include "tests/sample_directory.h"
>>>>>>> de910fd (Test the real daemon with everything it stands on taken away in turn)
#include "tests/temp_folder.h"

namespace fingerpost {

<<<<<<< HEAD
// Looks every 5 ms until `done`; false if that takes longer than `most`.
inline bool wait_until(const std::function<bool()>& done,
                       std::chrono::milliseconds most = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
=======
// Until `done`, looked at every millisecond; false if `patience` is over first.
inline bool eventually(const std::function<bool()>& done,
                       std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
>>>>>>> de910fd (Test the real daemon with everything it stands on taken away in turn)
  }
  return true;
}

<<<<<<< HEAD
class DaemonProcess {
 public:
  struct Surroundings {
    std::map<std::string, std::string> environment;
    std::function<void()> before_exec;  // in the child
  };

  explicit DaemonProcess(const std::vector<std::string>& arguments,
                         const Surroundings& surroundings = {}) {
    std::vector<char*> argv = {const_cast<char*>(FINGERPOST_DAEMON)};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      for (const auto& [name, value] : surroundings.environment)
        ::setenv(name.c_str(), value.c_str(), 1);
      ::dup2(::open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
      ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
      if (surroundings.before_exec) surroundings.before_exec();
=======
// One process that this test started; killed with the object if it still runs.
class Process {
 public:
  // `prepare` runs in the child, just before the program does.
  Process(const std::vector<std::string>& command, const std::string& log,
          const std::function<void()>& prepare = {}) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a test that crashes
      const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      ::dup2(to, STDOUT_FILENO);
      ::dup2(to, STDERR_FILENO);
      if (prepare) prepare();
>>>>>>> de910fd (Test the real daemon with everything it stands on taken away in turn)
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
<<<<<<< HEAD
  ~DaemonProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(log_path(), std::ios::binary).rdbuf();
    return text.str();
  }
  std::size_t log_count(const std::string& text) const {
    const std::string all = log();
    std::size_t count = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
      ++count;
    return count;
  }
  bool waits_to_log(const std::string& text) const {
    return wait_until([&] { return log_count(text) != 0; });
  }

  // The exit status; -1: killed, -2: it did not end in time.
  int end(std::chrono::milliseconds most = std::chrono::seconds(10)) {
    int status = 0;
    if (!wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, most)) return -2;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int stop() {
    signal(SIGTERM);
    return end();
  }

 private:
  std::string log_path() const { return folder_.file("log"); }

  TempFolder folder_;
  pid_t pid_ = -1;
};

=======
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { kill(); }

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // As it is killed when memory runs out: nothing of its own runs any more.
  void kill() {
    if (status_) return;
    signal(SIGKILL);
    wait();
  }
  // Whether it would not die of that signal, but hear it.
  bool hears(int number) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:"))
        return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
    }
    return false;
  }
  bool is_running() { return !ended(WNOHANG); }
  // Its exit status, once it ends by itself; nullopt if it does not in time, or dies of a signal.
  std::optional<int> exit_status(std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    if (!eventually([this] { return ended(WNOHANG); }, patience)) return std::nullopt;
    return WIFEXITED(*status_) ? std::optional(WEXITSTATUS(*status_)) : std::nullopt;
  }

 private:
  void wait() { ended(0); }
  bool ended(int options) {
    if (status_) return true;
    int status = 0;
    pid_t got = -1;
    while ((got = ::waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
    }
    if (got == pid_) status_ = status;
    return status_.has_value();
  }

  pid_t pid_ = -1;
  std::optional<int> status_;
};

class DaemonHost {
 public:
  explicit DaemonHost(const std::string& segment_folder = "/dev/shm") : shm_(segment_folder) {
    make_sample_directory(directory_path());
  }

  std::string directory_path() const { return files_.file("directory.db"); }
  std::string state_dir() const { return files_.file("state"); }
  std::string segment_path() const { return shm_.file("seg"); }
  std::string segment_folder() const { return shm_.path(); }
  std::string file(const std::string& name) const { return files_.file(name); }

  // Whoever changes the directory: anybody with SQL.
  SqliteDb db() const { return SqliteDb(directory_path(), SqliteDb::Mode::read_write); }
  void sql(const std::string& text) const { db().exec(text); }
  std::uint64_t version() const {
    return static_cast<std::uint64_t>(db().integer("SELECT version FROM directory_version"));
  }
  // Tenants `prefix`0 and so on.
  void add_tenants(int count, const std::string& shard = "alpha",
                   const std::string& prefix = "t") const {
    sql("INSERT INTO shard_directory (entry_id, shard_id) WITH RECURSIVE n(i) AS (SELECT 0 UNION "
        "ALL SELECT i + 1 FROM n WHERE i + 1 < " +
        std::to_string(count) + ") SELECT '" + prefix + "' || i, '" + shard + "' FROM n");
  }
  // From now on no change counts as an accident.
  void approve_everything() const {
    sql("INSERT INTO directory_approval (version, who, at) VALUES (4611686018427387904, 'test', "
        "'2026-01-01T00:00:00Z')");
  }

  // As `tenant forget` does it.
  void forget(const std::string& id) const {
    SqliteDb writer = db();
    SqliteTransaction transaction(writer, SqliteTransaction::Kind::write);
    writer.exec("INSERT INTO directory_session (id, who, verb) VALUES (1, 'test', 'forget')");
    writer.prepare("INSERT INTO directory_removed (entry_id, version, uncovers) VALUES (?, 0, ?)")
        .bind(id, "bucket:" + std::to_string(placement_hash(id) % 16))
        .run();
    writer.prepare("DELETE FROM shard_directory WHERE entry_id = ?").bind(id).run();
    writer.exec("DELETE FROM directory_session");
    transaction.commit();
  }

  // What a test does not say in `more` itself is the usual.
  std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {FINGERPOST_DAEMON};
    const std::vector<std::pair<std::string, std::string>> usual = {
        {"--name", segment_path()},
        {"--directory", directory_path()},
        {"--state-dir", state_dir()},
        {"--poll-interval", "200ms"},
        {"--catch-up-wait", "300ms"}};
    for (const auto& [flag, value] : usual) {
      if (std::find(more.begin(), more.end(), flag) != more.end()) continue;
      words.insert(words.end(), {flag, value});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Starts a daemon without waiting for anything.
  Process& start(const std::vector<std::string>& more = {},
                 const std::function<void()>& prepare = {}) {
    daemon_.emplace(command(more), file("log"), prepare);
    return *daemon_;
  }
  // Starts a daemon and waits until it has caught up with the directory.
  void serve(const std::vector<std::string>& more = {}) {
    const std::size_t said = log().size();
    start(more);
    REQUIRE_MESSAGE(eventually([&] { return has_begun(said) && serving() == "caught up"; }), log());
  }
  Process& daemon() { return *daemon_; }
  // SIGKILL.
  void kill() { daemon_.reset(); }
  // SIGTERM; how long it took.
  std::chrono::milliseconds stop() {
    REQUIRE(eventually([this] { return daemon_->hears(SIGTERM); }));
    const auto begin = std::chrono::steady_clock::now();
    daemon_->signal(SIGTERM);
    const auto status = daemon_->exit_status();
    CHECK_MESSAGE(status == 0, log());
    daemon_.reset();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
  }

  // A second daemon, or one that is to fail: how it ended and what it said.
  Ran run(const std::vector<std::string>& more = {}) const {
    auto words = command(more);
    const std::string program = words.front();
    words.erase(words.begin());
    return run_program(program, words);
  }

  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(file("log")).rdbuf();
    return text.str();
  }
  bool logged(const std::string& what) const { return log().find(what) != std::string::npos; }

  Reader reader() const {
    auto opened = Reader::open(segment_path());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message() << "\n" << log());
    return std::move(*opened);
  }
  // What a new worker would find.
  std::string serving() const {
    const auto opened = Reader::open(segment_path());
    return opened.ok() ? std::string(opened->status().serving) : "";
  }

 private:
  // What an earlier daemon left says "caught up" as well; not so once the next one has taken it.
  bool has_begun(std::size_t said) const {
    const std::string news = log().substr(said);
    return news.find(" adopted ") != std::string::npos ||
           news.find(" serving ") != std::string::npos;
  }

  TempFolder files_{"/dev/shm"};  // where a commit waits for no disk
  TempFolder shm_;
  std::optional<Process> daemon_;
};

// Waits until `worker`, which polls as a worker should, finds `id` on `shard`.
inline bool sees(const Reader& worker, const std::string& id, const std::string& shard,
                 std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  return eventually(
      [&] {
        worker.poll();
        return worker.resolve(id).shard().name() == shard;
      },
      patience);
}

inline std::uint64_t count_of(const Reader& worker, Counter which) {
  return worker.status().counters[static_cast<std::size_t>(which)];
}

>>>>>>> de910fd (Test the real daemon with everything it stands on taken away in turn)
}  // namespace fingerpost
