// fingerpostd as a process: what workers see of changes, of its death at any moment, and of its
// name, files and folders being taken away under it.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>

#include "shm/writer_lock.h"
#include "tests/child_process.h"
#include "tests/daemon_host.h"
#include "tests/other_user.h"

using namespace fingerpost;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t ms_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
}

// A worker that never stops asking, and keeps what it was told about the tenants of a churn.
class Witness {
 public:
  Witness(Reader reader, int tenants) : reader_(std::move(reader)), tenants_(tenants) {
    thread_ = std::thread([this] { watch(); });
  }
  ~Witness() { finish(); }

  void finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  const Reader& reader() const { return reader_; }
  std::uint64_t answers() const { return answers_; }

  // Only after finish(): every answer against the directory's own history.
  void check_against(SqliteDb& db) const {
    CHECK(complaint_ == "");
    CHECK(reader_.undetermined_count() == 0);
    std::uint64_t wrong = 0;
    SqliteStatement find = db.prepare(
        "SELECT count(*) FROM directory_history WHERE version = ? AND entry_id = ? AND shard_after "
        "= ?");
    for (const auto& [what, shard] : seen_) {
      find.reset();
      find.bind(what.second, what.first, shard);
      wrong += !find.step() || find.number(0) != 1;
    }
    CHECK_MESSAGE(wrong == 0, wrong << " of " << seen_.size() << " answers were never true");
  }

 private:
  void watch() {
    std::vector<std::uint64_t> newest(static_cast<std::size_t>(tenants_));
    std::int64_t polled = 0;
    while (!stop_) {
      for (int i = 0; i < tenants_ && !stop_; ++i) {
        const std::string id = "t" + std::to_string(i);
        const Route route = reader_.resolve(id);
        ++answers_;
        std::uint64_t& last = newest[static_cast<std::size_t>(i)];
        if (!route.found()) complaint_ = id + " was not found";
        if (route.epoch() < last) complaint_ = id + " went back";
        last = route.epoch();
        const std::string shard(route.shard().name());
        const auto [known, is_new] = seen_.try_emplace({id, route.epoch()}, shard);
        if (!is_new && known->second != shard) complaint_ = id + " had two owners in one epoch";
      }
      if (const std::int64_t now = Clock::now().time_since_epoch() / 1s; now != polled) {
        polled = now;
        reader_.poll();
      }
    }
  }

  Reader reader_;
  int tenants_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> answers_{0};
  std::map<std::pair<std::string, std::uint64_t>, std::string> seen_;
  std::string complaint_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a change by plain SQL is visible to a running worker a moment after its commit") {
  DaemonHost host;
  host.approve_everything();
  host.serve();
  const Reader worker = host.reader();
  SqliteDb db = host.db();
  std::vector<double> latencies;
  const auto change = [&](const std::string& sql, const std::function<bool()>& visible) {
    db.exec(sql);
    const auto committed = Clock::now();
    REQUIRE_MESSAGE(eventually(visible, 1s), sql);
    latencies.push_back(
        std::chrono::duration<double, std::milli>(Clock::now() - committed).count());
  };
  for (int round = 0; round < 25; ++round) {
    const std::string id = "c" + std::to_string(round);
    const auto is_on = [&](const char* shard) {
      return [&worker, id, shard] { return worker.resolve(id).shard().name() == shard; };
    };
    change("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('" + id + "', 'alpha')",
           is_on("alpha"));
    change("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = '" + id + "'",
           is_on("beta"));
    change("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('" + id +
               "', 'gamma')",
           is_on("gamma"));
    change("DELETE FROM shard_directory WHERE entry_id = '" + id + "'",
           [&] { return worker.resolve(id).answer() == Answer::deleted; });
  }
  std::sort(latencies.begin(), latencies.end());
  MESSAGE("commit to visible: p50 " << latencies[latencies.size() / 2] << " ms, p99 "
                                    << latencies[latencies.size() * 99 / 100] << " ms");
  CHECK(latencies[latencies.size() / 2] < 50.0);
}

TEST_CASE("whoever waits for a committed version reads their own write") {
  DaemonHost host;
  host.serve();
  const Reader worker = host.reader();
  for (int i = 0; i < 20; ++i) {
    const std::string id = "w" + std::to_string(i);
    host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('" + id + "', 'beta')");
    const Status waited = worker.wait_version(host.version(), 2s);
    REQUIRE_MESSAGE(waited.ok(), waited.message());
    CHECK(worker.resolve(id).shard().name() == "beta");
  }
  CHECK(worker.wait_version(host.version() + 1, 20ms).code() == Code::timeout);
}

TEST_CASE("a daemon killed at any moment: no worker notices, and the next one goes on") {
  constexpr int kTenants = 400;
  DaemonHost host;
  host.approve_everything();
  host.add_tenants(kTenants);
  host.serve();
  Witness witness(host.reader(), kTenants);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    SqliteDb db = host.db();
    std::mt19937 random(11);
    const std::array<const char*, 3> shards = {"alpha", "beta", "gamma"};
    for (int i = 0; !stop; ++i) {
      db.exec("UPDATE shard_directory SET shard_id = '" + std::string(shards[random() % 3]) +
              "' WHERE entry_id = 't" + std::to_string(random() % kTenants) + "'");
      if (i % 8 == 0) {  // grows, again and again
        db.exec(
            "INSERT INTO shard_directory (entry_id, shard_id) WITH RECURSIVE n(i) AS (SELECT 0 "
            "UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT 'g" +
            std::to_string(i) + "-' || i, 'beta' FROM n");
      }
      std::this_thread::sleep_for(2ms);
    }
  });
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    host.kill();
    if (round % 10 == 9) fs::remove(host.segment_path());  // the next one loads
    host.start({"--snapshot-interval", "20ms"});
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 90'000));
  }
  stop = true;
  writer.join();
  host.kill();
  host.serve();
  const std::uint64_t version = host.version();
  CHECK(eventually([&] {
    witness.reader().poll();
    return witness.reader().version() >= version;
  }));
  witness.finish();
  CHECK(witness.answers() > 10'000);
  SqliteDb db = host.db();
  witness.check_against(db);
  const Ran check = run_program(
      FINGERPOST_PROGRAM, {"check", host.segment_path(), "--directory", host.directory_path()});
  CHECK_MESSAGE(check.status == 0, check.out << check.err);
  // Nothing half-made is left, and nobody had to remove anything.
  for (const auto& file : fs::directory_iterator(host.segment_folder())) {
    const std::string name = file.path().filename();
    CHECK_MESSAGE((name == "seg" || name == "seg.lock"), name);
  }
}

TEST_CASE("a daemon that starts again adopts fifty thousand entries within a second") {
  DaemonHost host;
  host.add_tenants(50'000);
  host.serve();
  const Reader worker = host.reader();
  host.kill();
  const auto begin = Clock::now();
  host.start();
  REQUIRE(eventually([&] {
    return count_of(worker, Counter::adoptions) == 1 && worker.status().serving == "caught up";
  }));
  MESSAGE("adopted and caught up after " << ms_since(begin) << " ms");
  CHECK(ms_since(begin) < 3'000);
  CHECK(count_of(worker, Counter::reloads) == 1);  // the first load, no other
}

TEST_CASE("a segment whose name is removed gets a successor, and workers move over") {
  DaemonHost host;
  host.approve_everything();
  host.add_tenants(500);
  host.serve();
  const Reader worker = host.reader();
  fs::remove(host.segment_path());
  REQUIRE(eventually([&] { return fs::exists(host.segment_path()); }));
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't7'");
  REQUIRE(sees(worker, "t7", "beta"));
  CHECK(count_of(worker, Counter::supersedes) == 1);
  // The same while nobody is there to notice.
  host.kill();
  fs::remove(host.segment_path());
  CHECK(worker.resolve("t7").shard().name() == "beta");
  host.serve();
  host.sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = 't7'");
  CHECK(sees(worker, "t7", "gamma"));
}

TEST_CASE("the lock file removed under a daemon is made again, and still keeps others out") {
  DaemonHost host;
  host.serve();
  fs::remove(host.segment_path() + ".lock");
  REQUIRE(eventually([&] { return fs::exists(host.segment_path() + ".lock"); }, 5s));
  const Ran second = host.run();
  CHECK(second.status == 4);
  CHECK(host.daemon().is_running());
  CHECK(eventually([&] { return host.reader().ready(); }));
}

TEST_CASE("a second daemon on the same name ends in two seconds and says why") {
  DaemonHost host;
  host.serve();
  const auto begin = Clock::now();
  const Ran second = host.run();
  CHECK(second.status == 4);
  CHECK(ms_since(begin) >= 2'000);  // the first might be on its way out
  CHECK(ms_since(begin) < 4'000);
  CHECK(second.err.find(" error another writer holds the lock " + host.segment_path() + ".lock") !=
        std::string::npos);
  CHECK(host.daemon().is_running());
}

TEST_CASE("a daemon waits for one that is on its way out") {
  DaemonHost host;
  std::optional<WriterLock> dying;
  auto lock = WriterLock::acquire(host.segment_path(), ::geteuid());
  REQUIRE(lock.ok());
  dying.emplace(std::move(*lock));
  host.start();
  REQUIRE(eventually([&] { return host.logged("waiting up to two seconds: "); }));
  CHECK(!fs::exists(host.segment_path()));
  dying.reset();
  CHECK(eventually([&] { return fs::exists(host.segment_path()); }));
}

TEST_CASE("a daemon that waits for the lock can be stopped") {
  DaemonHost host;
  const auto lock = WriterLock::acquire(host.segment_path(), ::geteuid());
  REQUIRE(lock.ok());
  host.start();
  REQUIRE(eventually([&] { return host.logged("waiting up to two seconds: "); }));
  host.daemon().signal(SIGTERM);
  CHECK(host.daemon().exit_status() == 0);
  CHECK(host.logged("stopped before it began"));
}

TEST_CASE("of many daemons started at once exactly one serves") {
  DaemonHost host;
  host.add_tenants(100);
  std::vector<std::unique_ptr<Process>> all;
  for (int i = 0; i < 6; ++i)
    all.push_back(std::make_unique<Process>(host.command(), host.file("log")));
  REQUIRE(eventually([&] {
    return std::count_if(all.begin(), all.end(), [](auto& one) { return one->is_running(); }) == 1;
  }));
  CHECK(eventually([&] { return host.serving() == "caught up"; }));
  CHECK(host.reader().resolve("t99").found());
  for (auto& one : all) {
    if (one->is_running()) one->signal(SIGTERM);
    const auto status = one->exit_status();
    CHECK((status == 0 || status == 4));
  }
}

TEST_CASE("SIGTERM ends it within a second, at any moment, and the segment goes on serving") {
  DaemonHost host;
  host.add_tenants(60'000);
  std::mt19937 random(3);
  for (int round = 0; round < 8; ++round) {
    if (round % 2 == 0) fs::remove(host.segment_path());  // in mid-load
    host.start();
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 250));
    const auto took = host.stop();
    CHECK_MESSAGE(took < 1'000ms, took.count() << " ms");
  }
  host.serve();
  const Reader worker = host.reader();
  CHECK(host.stop() < 1'000ms);
  CHECK(worker.resolve("t59999").found());
  CHECK(host.reader().resolve("t59999").found());
  CHECK(host.logged("the segment goes on serving"));
}

TEST_CASE("a storm of signals hurts nobody") {
  DaemonHost host;
  host.add_tenants(20'000);
  host.serve();
  const Reader worker = host.reader();
  host.add_tenants(20'000, "beta", "more");
  for (int i = 0; i < 10'000; ++i) {
    host.daemon().signal(
        std::array{SIGPIPE, SIGWINCH, SIGHUP, SIGUSR1, SIGUSR2}[static_cast<std::size_t>(i % 5)]);
    if (i % 100 == 0) std::this_thread::sleep_for(1ms);
  }
  CHECK(sees(worker, "more19999", "beta"));
  for (int i = 0; i < 100; ++i) host.daemon().signal(SIGTERM);
  CHECK(host.daemon().exit_status() == 0);
}

TEST_CASE("the segment has exactly the mode that is configured, whatever the umask") {
  DaemonHost host;
  host.start({"--mode", "0644"}, [] { ::umask(077); });
  REQUIRE(eventually([&] { return host.serving() == "caught up"; }));
  const auto mode_of = [](const std::string& path) {
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
  };
  CHECK(mode_of(host.segment_path()) == 0644);
  CHECK(mode_of(host.segment_path() + ".lock") == 0600);
  host.kill();
  host.start({"--mode", "0640"}, [] { ::umask(0); });
  REQUIRE(eventually([&] { return mode_of(host.segment_path()) == 0640; }));
}

TEST_CASE("owner, group and mode that somebody changes are put back, and that is said") {
  DaemonHost host;
  host.serve();
  const auto has = [&](uid_t owner, gid_t group, mode_t mode) {
    struct stat info {};
    return ::stat(host.segment_path().c_str(), &info) == 0 && info.st_uid == owner &&
           info.st_gid == group && (info.st_mode & 07777) == mode;
  };
  REQUIRE(::chmod(host.segment_path().c_str(), 0666) == 0);
  CHECK(eventually([&] { return has(::geteuid(), ::getegid(), 0640); }));
  CHECK(eventually([&] {
    return host.logged("owner, group or mode of " + host.segment_path() + " were changed, to ");
  }));
  CHECK(host.logged("mode 0666; put back"));
  if (!can_switch_users()) return;
  REQUIRE(::chown(host.segment_path().c_str(), kStranger, kStrangerGroup) == 0);
  CHECK(eventually([&] { return has(::geteuid(), ::getegid(), 0640); }));
  // While it is down nobody puts it back, and the next one does not believe it.
  host.stop();
  REQUIRE(::chmod(host.segment_path().c_str(), 0666) == 0);
  const Ran ran = host.run();
  CHECK(ran.status == 4);
  CHECK(ran.err.find("may be written by others") != std::string::npos);
  CHECK(ran.err.find("; set it right if you trust what it holds, or remove it") !=
        std::string::npos);
  fs::remove(host.segment_path());
  host.serve();
}

TEST_CASE("a segment that is cut ends the daemon, and the next one replaces it") {
  DaemonHost host;
  host.add_tenants(5'000);
  struct Cut {
    off_t length;
    bool running;
  };
  for (const Cut& cut : {Cut{0, true},
                         {4'096, true},
                         {3 << 20, true},
                         {3 << 20, false},
                         {4'096, false},
                         {0, false}}) {
    CAPTURE(cut.length);
    CAPTURE(cut.running);
    host.serve();
    if (!cut.running) host.stop();
    REQUIRE(::truncate(host.segment_path().c_str(), cut.length) == 0);
    if (!cut.running) continue;
    // By name where that is seen before a turn; by SIGBUS where a turn was at it.
    const auto status = host.daemon().exit_status();
    CHECK_FALSE(host.daemon().is_running());
    CHECK((!status || *status == 5));
  }
  host.serve();
  CHECK(host.reader().resolve("t0").found());
}

TEST_CASE("a stranger's look-alike is neither adopted nor replaced, and is named") {
  if (!can_switch_users()) return;
  DaemonHost host;
  make_file(host.segment_path(), kStranger, kStrangerGroup, 0600);
  const auto begin = Clock::now();
  const Ran ran = host.run();
  CHECK(ran.status == 4);
  CHECK(ms_since(begin) < 2'000);
  CHECK(ran.err.find(host.segment_path()) != std::string::npos);
  CHECK(ran.err.find(std::to_string(kStranger)) != std::string::npos);
  struct stat info {};
  REQUIRE(::stat(host.segment_path().c_str(), &info) == 0);
  CHECK(info.st_uid == kStranger);
  CHECK(info.st_size == 0);
}

TEST_CASE("a command line that makes no sense ends with status 2 and makes nothing") {
  const DaemonHost host;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--capacity", "0"},
                                             {"--capacity", "-1"},
                                             {"--capacity", "99999999999999999999"},
                                             {"--capacity", "many"},
                                             {"--mode", "0999"},
                                             {"--mode", ""},
                                             {"--owner", "no-such-user-here"},
                                             {"--group", "no-such-group-here"},
                                             {"--poll-interval", "0"},
                                             {"--poll-interval", "-1s"},
                                             {"--poll-interval", "1 fortnight"},
                                             {"--stale-after", "99999999999h"},
                                             {"--topology-bytes", "1"},
                                             {"--no-such-flag"},
                                             {"stray"}}) {
    const Ran ran = host.run(arguments);
    CAPTURE(arguments.front());
    CHECK(ran.status == 2);
    CHECK_FALSE((ran.err + ran.out).empty());
  }
  CHECK(run_program(FINGERPOST_DAEMON, {}).status == 2);
  CHECK(run_program(FINGERPOST_DAEMON, {"--help"}).status == 0);
  CHECK_FALSE(fs::exists(host.segment_path()));
  CHECK_FALSE(fs::exists(host.state_dir()));
}

TEST_CASE("a mode that would let others write is refused, and a folder on a disk too") {
  const DaemonHost host;
  const Ran writable = host.run({"--mode", "0666"});
  CHECK(writable.status == 2);
  CHECK(writable.err.find("0666") != std::string::npos);
  const TempFolder disk;
  const Ran on_disk = host.run({"--name", disk.file("segment")});
  CHECK(on_disk.status == 3);
  CHECK_FALSE(fs::exists(disk.file("segment")));
}

TEST_CASE(
    "every id is where another reader of the same file finds it, and no id is anywhere else") {
  DaemonHost host;
  const std::string path = host.file("sections.db");
  const auto fingerpost = [&](std::vector<std::string> words, const std::string& input = {}) {
    words.insert(words.end(), {"--directory", path});
    const Ran ran = run_program(FINGERPOST_PROGRAM, words, input);
    REQUIRE_MESSAGE(ran.status == 0, ran.out << ran.err);
  };
  fingerpost({"init", "--buckets", "64"});
  for (int i = 1; i <= 8; ++i) fingerpost({"shard", "add", "s" + std::to_string(i)});
  fingerpost({"bucket", "assign"});
  // As large installations are: a few sections of one giant each, and most tenants in one.
  std::string csv = "entry_id,shard_id\r\n";
  for (int i = 0; i < 1'000; ++i) {
    const int section = i < 3 ? i + 1 : i < 40 ? 4 + i % 4 : i % 10 == 0 ? 3 : 8;
    csv += (i % 7 == 0 ? "\"wiki, " : "\"wiki") + std::to_string(i) + "\",s" +
           std::to_string(section) + "\r\n";
  }
  fingerpost({"import", "-"}, csv);
  host.serve({"--directory", path});
  std::vector<std::string> words = {FINGERPOST_COMPARE, FINGERPOST_PROGRAM, host.segment_path(),
                                    path};
  for (int i = 0; i < 200; ++i) words.push_back("unlisted" + std::to_string(i));
  const Ran ran = run_program("/usr/bin/python3", words);
  if (ran.status == 127) {
    MESSAGE("not tried: there is no python3");
    return;
  }
  CHECK_MESSAGE(ran.status == 0, ran.out << ran.err);
}
