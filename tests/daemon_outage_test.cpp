// fingerpostd when what it stands on fails: the directory, its disk, its memory. Whatever happens,
// known tenants resolve as before, and what is wrong is said.
#include <doctest/doctest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <atomic>
#include <filesystem>

#include "tests/child_process.h"
#include "tests/daemon_host.h"
#include "tests/refused_call.h"

using namespace fingerpost;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

// Another directory's id, in a file of its own.
void make_other_directory(const std::string& path) {
  make_sample_directory(path);
  SqliteDb db(path, SqliteDb::Mode::read_write);
  db.exec("DROP TRIGGER directory_layout_fixed");
  db.exec("UPDATE directory_layout SET directory_id = '0f000000-0000-4000-8000-000000000002'");
}

bool source_is(const Reader& worker, const std::string& state) {
  return eventually([&] { return worker.status().source_state == state; });
}

// A small tmpfs for as long as the object lives; seen by this process and its children alone.
class SmallTmpfs {
 public:
  explicit SmallTmpfs(const std::string& size) {
    mounted_ = ::unshare(CLONE_NEWNS) == 0 &&
               ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    if (!mounted_) MESSAGE("not tried: mounting is not permitted here");
  }
  ~SmallTmpfs() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return mounted_; }
  const std::string& path() const { return folder_.path(); }

  void fill() const {
    std::ofstream hog(hog_path(), std::ios::binary);
    const std::string block(64 * 1024, 'x');
    while (hog.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void make_room() const { fs::remove(hog_path()); }

 private:
  std::string hog_path() const { return folder_.file("hog"); }

  TempFolder folder_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("with its directory locked or gone a host serves on, its data ages, and it catches up") {
  DaemonHost host;
  host.add_tenants(100);
  host.serve({"--stale-after", "400ms"});
  const Reader worker = host.reader();
  CHECK_FALSE(worker.stale());
  {
    SqliteDb db = host.db();  // a writer that holds the lock for long is no outage
    const SqliteTransaction held(db, SqliteTransaction::Kind::write);
    std::this_thread::sleep_for(700ms);
    CHECK(worker.status().source_state == "ok");
    CHECK_FALSE(worker.stale());
  }
  fs::create_directory(host.file("away"));
  const auto move = [&](const std::string& from, const std::string& to) {
    for (const char* name : {"directory.db", "directory.db-wal", "directory.db-shm"}) {
      if (fs::exists(from + name)) fs::rename(from + name, to + name);
    }
  };
  move(host.file(""), host.file("away/"));
  REQUIRE(source_is(worker, "unavailable"));
  REQUIRE(eventually([&] { return worker.stale(); }));
  CHECK(worker.ready());  // serving old data is better than serving none
  CHECK(*worker.age() > 400ms);
  CHECK(worker.status().last_error.find("directory.db") != std::string::npos);
  for (int i = 0; i < 100; ++i)
    CHECK(worker.resolve("t" + std::to_string(i)).shard().name() == "alpha");
  {
    SqliteDb db(host.file("away/directory.db"), SqliteDb::Mode::read_write);
    put_tenant(db, "late", "gamma");
  }
  move(host.file("away/"), host.file(""));
  CHECK(sees(worker, "late", "gamma", 15s));
  CHECK(source_is(worker, "ok"));
  CHECK_FALSE(worker.stale());
  CHECK(worker.status().last_error.empty());
}

TEST_CASE("a source that fails for long is said once, with a count, and not asked without end") {
  DaemonHost host;
  host.serve();
  const Reader worker = host.reader();
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(host.directory_path() + suffix);
  REQUIRE(source_is(worker, "unavailable"));
  std::this_thread::sleep_for(3s);
  std::uint64_t lines = 0;
  std::istringstream log(host.log());
  for (std::string line; std::getline(log, line);)
    lines += line.find("does not serve") != std::string::npos;
  CHECK(lines == 1);
  CHECK(count_of(worker, Counter::sync_failures) < 30);
}

TEST_CASE("a directory restored to an older state is another history: noticed and loaded") {
  DaemonHost host;
  host.add_tenants(200);
  host.serve();
  copy_database(host.directory_path(), host.file("backup"));
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('lost', 'beta')");
  host.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't1'");
  const Reader worker = host.reader();
  REQUIRE(sees(worker, "lost", "beta"));
  const auto before = worker.status();
  Status waited;
  std::atomic<bool> waits{false};
  std::thread waiter([&] {
    waits = true;
    waited = worker.wait_version(before.version + 1'000, 15s);
  });
  REQUIRE(eventually([&] { return waits.load(); }));
  std::this_thread::sleep_for(100ms);  // until it sleeps
  replace_database(host.directory_path(), host.file("backup"));
  CHECK(eventually([&] {
    return worker.resolve("lost").answer() != Answer::found ||
           worker.resolve("lost").source() == RouteSource::bucket;
  }));
  CHECK(worker.resolve("t1").state() == State::active);
  CHECK(eventually([&] { return worker.status().incarnation > before.incarnation; }));
  CHECK(worker.status().version < before.version);
  CHECK(eventually([&] { return count_of(worker, Counter::history_changes) == 1; }));
  waiter.join();
  CHECK_MESSAGE(waited.code() == Code::other_history, waited.message());
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('anew', 'gamma')");
  CHECK(sees(worker, "anew", "gamma"));
}

TEST_CASE("another directory under the same path is refused, and the old data stays") {
  DaemonHost host;
  host.add_tenants(100);
  host.serve();
  const Reader worker = host.reader();
  make_other_directory(host.file("other"));
  copy_database(host.directory_path(), host.file("own"));
  {
    SqliteDb db(host.file("other"), SqliteDb::Mode::read_write);
    put_tenant(db, "t5", "gamma");
  }
  replace_database(host.directory_path(), host.file("other"));
  REQUIRE_MESSAGE(source_is(worker, "other_directory"), worker.status().last_error << host.log());
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  host.kill();
  const Ran again = host.run();
  CHECK(again.status == 3);
  CHECK(again.err.find("0f000000-0000-4000-8000-000000000001") != std::string::npos);
  CHECK(again.err.find("0f000000-0000-4000-8000-000000000002") != std::string::npos);
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  replace_database(host.directory_path(), host.file("own"));
  host.serve();
  CHECK(worker.status().source_state == "ok");
}

TEST_CASE("what is no directory of ours is refused at start, and ages the data at run time") {
  DaemonHost host;
  host.add_tenants(10);
  host.serve();
  const Reader worker = host.reader();
  {
    SqliteDb alien(host.file("alien"), SqliteDb::Mode::create);
    alien.exec("CREATE TABLE shards (id)");
  }
  replace_database(host.directory_path(), host.file("alien"));
  REQUIRE(source_is(worker, "refused"));
  CHECK(worker.resolve("t9").found());
  host.kill();
  const Ran again = host.run();
  CHECK(again.status == 3);
  CHECK(again.err.find("lacks shard_directory") != std::string::npos);
}

TEST_CASE("nothing to serve: no segment, no guess; and it serves once the directory appears") {
  DaemonHost host;
  host.add_tenants(10);
  copy_database(host.directory_path(), host.file("backup"));
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(host.directory_path() + suffix);
  host.start();
  REQUIRE(eventually([&] { return host.logged("does not serve"); }));
  std::this_thread::sleep_for(500ms);
  CHECK(Reader::open(host.segment_path()).status().code() == Code::absent);
  replace_database(host.directory_path(), host.file("backup"));
  REQUIRE(eventually([&] { return host.serving() == "caught up"; }, 15s));
  CHECK(host.reader().resolve("t9").found());
}

TEST_CASE("a snapshot serves without the directory, marked stale, and only its own") {
  DaemonHost host;
  host.add_tenants(1'000);
  host.serve();
  host.stop();
  fs::remove(host.segment_path());
  const std::string away = host.file("away.db");
  copy_database(host.directory_path(), away);
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(host.directory_path() + suffix);
  host.start({"--stale-after", "100ms"});
  REQUIRE(eventually([&] { return host.serving() == "snapshot"; }));
  const Reader worker = host.reader();
  REQUIRE(eventually([&] { return worker.ready(); }));
  CHECK(worker.stale());
  CHECK(worker.age());
  CHECK(worker.resolve("t999").shard().name() == "alpha");
  {
    SqliteDb db(away, SqliteDb::Mode::read_write);
    put_tenant(db, "late", "beta");
  }
  replace_database(host.directory_path(), away);
  CHECK(sees(worker, "late", "beta", 15s));
  host.stop();
  fs::remove(host.segment_path());
  // The same state folder under another directory: what is in it is another's.
  make_other_directory(host.file("other"));
  replace_database(host.directory_path(), host.file("other"));
  host.serve();
  CHECK(host.reader().resolve("t999").source() != RouteSource::override_entry);
}

TEST_CASE("too old a snapshot is served to nobody as ready") {
  DaemonHost host;
  host.add_tenants(10);
  host.serve();
  host.stop();
  fs::remove(host.segment_path());
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(host.directory_path() + suffix);
  std::this_thread::sleep_for(50ms);
  host.start({"--max-snapshot-age", "20ms"});
  REQUIRE(eventually([&] { return host.serving() == "snapshot"; }));
  std::this_thread::sleep_for(400ms);  // longer than catch_up_wait
  CHECK_FALSE(host.reader().ready());
  CHECK(host.reader().readiness().reason == "the data is older than max_snapshot_age");
}

TEST_CASE("a full disk costs snapshots and nothing else, and once there is room they go on") {
  const SmallTmpfs disk("2m");
  if (!disk.is_mounted()) return;
  DaemonHost host;
  host.add_tenants(5'000);
  disk.fill();
  host.serve({"--state-dir", disk.path() + "/state", "--snapshot-interval", "100ms"});
  const Reader worker = host.reader();
  REQUIRE(eventually([&] { return count_of(worker, Counter::snapshot_failures) >= 3; }));
  CHECK(host.logged("cannot write a snapshot"));
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('x', 'beta')");
  CHECK(sees(worker, "x", "beta"));
  CHECK(worker.ready());
  disk.make_room();
  CHECK(eventually([&] { return count_of(worker, Counter::snapshots_written) >= 1; }));
}

TEST_CASE(
    "a snapshot folder that is removed is made anew, with a snapshot though nothing changed") {
  DaemonHost host;
  host.add_tenants(100);
  host.serve({"--snapshot-interval", "100ms"});
  const Reader worker = host.reader();
  REQUIRE(eventually([&] { return count_of(worker, Counter::snapshots_written) >= 1; }));
  const auto before = count_of(worker, Counter::snapshots_written);
  fs::remove_all(host.state_dir());
  REQUIRE(eventually([&] { return count_of(worker, Counter::snapshots_written) > before; }));
  CHECK(host.logged("the snapshot folder " + host.state_dir() + " is gone; it is made anew"));
  host.kill();
  fs::remove(host.segment_path());
  fs::rename(host.directory_path(), host.file("away"));
  host.start();
  CHECK(eventually([&] { return host.serving() == "snapshot"; }));
}

TEST_CASE("a state directory that is a file, or a directory that is a folder, is refused by name") {
  const DaemonHost host;
  std::ofstream(host.state_dir()) << "text";
  const Ran ran = host.run();
  CHECK(ran.status == 3);
  CHECK(ran.err.find(host.state_dir() + " is no folder for snapshots, but a file") !=
        std::string::npos);
  fs::remove(host.state_dir());
  const Ran folder = host.run({"--directory", host.segment_folder()});
  CHECK(folder.status == 3);
  CHECK(folder.err.find(host.segment_folder() + ": is a folder") != std::string::npos);
}

TEST_CASE("where the kernel refuses io_uring, one line says so and snapshots are the same") {
  DaemonHost host;
  host.add_tenants(1'000);
  host.start({"--snapshot-interval", "50ms"},
             [] { refuse_system_call(SYS_io_uring_setup, EPERM); });
  REQUIRE(eventually([&] { return host.serving() == "caught up"; }));
  const Reader worker = host.reader();
  for (int round = 0; round < 3; ++round) {
    host.sql("UPDATE shard_directory SET shard_id = '" + std::string(round % 2 ? "alpha" : "beta") +
             "' WHERE entry_id = 't1'");
    const std::uint64_t before = count_of(worker, Counter::snapshots_written);
    REQUIRE(eventually([&] { return count_of(worker, Counter::snapshots_written) > before; }));
  }
  CHECK(count_of(worker, Counter::snapshot_by_ring) == 0);
  CHECK(count_of(worker, Counter::snapshot_bytes) > 1'000);
  host.stop();
  const std::string line = "io_uring_setup is refused";
  const std::string log = host.log();
  CHECK_MESSAGE(log.find(line) != std::string::npos, log);
  CHECK_MESSAGE(log.find(line) == log.rfind(line), log);

  fs::remove(host.segment_path());
  fs::rename(host.directory_path(), host.file("away.db"));
  host.start();
  REQUIRE(eventually([&] { return host.serving() == "snapshot"; }));
  CHECK(host.reader().resolve("t1").shard().name() == "beta");
}

TEST_CASE("full shared memory: what there is can be updated, growth is refused by name") {
  const SmallTmpfs memory("24m");
  if (!memory.is_mounted()) return;
  DaemonHost host(memory.path());
  host.add_tenants(3'000);
  host.serve();
  const Reader worker = host.reader();
  memory.fill();
  host.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id < 't2'");
  CHECK(eventually([&] { return worker.resolve("t1").state() == State::frozen; }));
  host.add_tenants(9'000, "beta", "more");
  REQUIRE(eventually([&] { return count_of(worker, Counter::rebuild_failures) >= 1; }));
  REQUIRE(eventually([&] { return host.logged("the table cannot grow"); }));
  CHECK(eventually([&] { return host.logged("finds no memory for a larger table"); }));
  CHECK_FALSE(host.logged("full under two seeds"));
  CHECK(host.daemon().is_running());
  for (int i = 0; i < 3'000; ++i) REQUIRE(worker.resolve("t" + std::to_string(i)).found());
  CHECK(eventually([&] { return count_of(worker, Counter::quarantined) > 0; }));
  CHECK(worker.status().replay_from != 0);
  CHECK(eventually([&] { return !worker.ready(); }));  // it answers for rows that it does not have
  host.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't2999'");
  CHECK(eventually([&] { return worker.resolve("t2999").state() == State::frozen; }));
  memory.make_room();
  CHECK(sees(worker, "more8999", "beta", 30s));
  CHECK(eventually([&] { return count_of(worker, Counter::quarantined) == 0; }, 30s));
  CHECK(eventually([&] { return worker.ready(); }));
}

TEST_CASE("too little shared memory at the start is refused with what it needs and what there is") {
  const SmallTmpfs memory("3m");
  if (!memory.is_mounted()) return;
  DaemonHost host(memory.path());
  host.add_tenants(40'000);
  const Ran ran = host.run();
  CHECK(ran.status == 4);
  CHECK(ran.err.find("needs") != std::string::npos);
  CHECK_FALSE(fs::exists(host.segment_path()));
  CHECK_FALSE(fs::exists(host.segment_path() + ".new"));
}

TEST_CASE("the capacity reached: said, not ready, and nobody who is in it is put out") {
  DaemonHost host;
  host.add_tenants(2'000);
  host.serve({"--capacity", "2000"});
  const Reader worker = host.reader();
  CHECK(worker.ready());
  host.add_tenants(200, "beta", "late");
  REQUIRE(eventually([&] { return count_of(worker, Counter::refused_for_room) == 200; }));
  CHECK_FALSE(worker.ready());
  CHECK(worker.readiness().reason ==
        "there is no room for all rows: the capacity is reached, or memory is lacking");
  for (int i = 0; i < 2'000; ++i) REQUIRE(worker.resolve("t" + std::to_string(i)).found());
  // The same for a start from nothing: as many as there is room for, and it says so.
  host.stop();
  fs::remove(host.segment_path());
  fs::remove_all(host.state_dir());
  host.serve({"--capacity", "2000"});
  const Reader second = host.reader();
  CHECK_FALSE(second.ready());
  CHECK(count_of(second, Counter::entries) == 2'000);
  CHECK(count_of(second, Counter::refused_for_room) == 200);
  // And with more room.
  host.stop();
  host.serve({"--capacity", "4000"});
  CHECK(sees(second, "late199", "beta"));
  CHECK(eventually([&] { return second.ready(); }));
}

TEST_CASE("ever changing addresses fill the topology: a successor takes over, workers follow") {
  DaemonHost host;
  host.add_tenants(50);
  host.serve({"--topology-bytes", "65536"});
  const Reader worker = host.reader();
  for (int i = 0; i < 60; ++i) {
    const std::string address = "db" + std::to_string(i) + ".example.net:5432";
    std::string replicas;  // makes a record of some 4 KB
    for (int j = 0; j < 40; ++j)
      replicas +=
          (j == 0 ? "\"" : ",\"") + std::string(80, 'r') + std::to_string(j) + address + '"';
    host.sql("UPDATE shard_topology SET primary_address = '" + address + "', replicas = '[" +
             replicas + "]' WHERE shard_id = 'alpha'");
    REQUIRE_MESSAGE(eventually([&] {
                      worker.poll();
                      return worker.resolve("t7").shard().primary() == address;
                    }),
                    host.log());
  }
  CHECK(count_of(worker, Counter::supersedes) >= 1);
  CHECK(worker.undetermined_count() == 0);
}

TEST_CASE("as many shards as there may be are served from the start, and from a snapshot") {
  DaemonHost host;
  host.sql(
      "INSERT INTO shard_topology (shard_id, primary_address) WITH RECURSIVE n(i) AS (SELECT 0 "
      "UNION ALL SELECT i + 1 FROM n WHERE i < 65529) SELECT 'shard-' || i, 'db-' || i || "
      "'.example.com:5432' FROM n");
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('last', 'shard-65529')");
  host.serve();
  CHECK(host.reader().resolve("last").shard().primary() == "db-65529.example.com:5432");
  host.stop();
  fs::remove(host.segment_path());
  fs::rename(host.directory_path(), host.file("away.db"));
  host.start();
  REQUIRE_MESSAGE(eventually([&] { return host.serving() == "snapshot"; }), host.log());
  CHECK(host.reader().resolve("last").shard().primary() == "db-65529.example.com:5432");
}

TEST_CASE("a table dropped under a daemon is named, and what is served stays") {
  DaemonHost host;
  host.add_tenants(10);
  host.serve();
  const Reader worker = host.reader();
  host.sql("PRAGMA foreign_keys = OFF; DROP TABLE shard_directory");
  REQUIRE(source_is(worker, "refused"));
  CHECK(host.logged("lacks shard_directory"));
  CHECK(worker.resolve("t9").found());
}

TEST_CASE("many shards at once, more than the topology has room for, are served all the same") {
  DaemonHost host;
  host.add_tenants(50);
  host.sql("DELETE FROM shard_topology WHERE shard_id = 'gamma'");
  host.serve({"--topology-bytes", "65536"});
  const Reader worker = host.reader();
  host.sql(
      "INSERT INTO shard_topology (shard_id, primary_address, replicas, region, weight, "
      "attributes) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) "
      "SELECT 's' || i, 'a-rather-long-name-of-a-database-host-' || i || '.example.net:5432', "
      "'[]', 'eu', 100, '{}' FROM n");
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('far', 's1999')");
  CHECK(sees(worker, "far", "s1999", 20s));
  const Ran check = run_program(
      FINGERPOST_PROGRAM, {"check", host.segment_path(), "--directory", host.directory_path()});
  CHECK_MESSAGE(check.status == 0, check.out << check.err);
}

TEST_CASE("rows that cannot be applied wait: counted, named, kept across SIGKILL, then applied") {
  DaemonHost host;
  host.add_tenants(20);
  host.sql("DROP TRIGGER shard_directory_insert_checked");
  host.sql("DROP TRIGGER shard_directory_id_checked");
  host.serve();
  const Reader worker = host.reader();
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('early', 'omega')");
  const std::uint64_t first = host.version();
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bad' || char(10), 'alpha')");
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:999', 'alpha')");
  host.sql(
      "INSERT INTO shard_directory (entry_id, shard_id, state) VALUES ('odd', 'beta', 'RESTING')");
  REQUIRE(sees(worker, "odd", "beta"));
  CHECK_FALSE(worker.resolve("odd").writable());
  CHECK(worker.version() == host.version());
  CHECK(eventually([&] { return count_of(worker, Counter::quarantined) == 3; }));
  CHECK(worker.status().replay_from == first);
  CHECK(host.logged("rows are quarantined"));
  // One bad row must not make every sync read the directory from there on again.
  host.add_tenants(5'000, "gamma", "many");
  REQUIRE(sees(worker, "many4999", "gamma"));
  const std::uint64_t again = count_of(worker, Counter::rows_not_newer);
  std::this_thread::sleep_for(1s);
  CHECK(count_of(worker, Counter::rows_not_newer) < again + 100);
  host.kill();
  host.serve();
  CHECK(count_of(worker, Counter::quarantined) == 3);
  CHECK(worker.status().replay_from == first);
  host.sql(
      "INSERT INTO shard_topology (shard_id, primary_address, replicas, region, weight, "
      "attributes) VALUES ('omega', 'db:1', '[]', '', 1, '{}')");
  CHECK(sees(worker, "early", "omega"));
  CHECK(eventually([&] { return count_of(worker, Counter::quarantined) == 2; }));
}

TEST_CASE("a cursor below the floor reloads within the same history, removals included") {
  DaemonHost host;
  host.add_tenants(50);
  host.serve();
  const Reader worker = host.reader();
  const std::uint64_t incarnation = worker.status().incarnation;
  host.kill();
  host.forget("t7");
  host.sql("DELETE FROM directory_removed");  // as retention forgets that it was
  REQUIRE(host.db().integer("SELECT replay_floor FROM directory_layout") > 0);
  host.serve();
  CHECK(worker.resolve("t7").source() != RouteSource::override_entry);
  CHECK(worker.resolve("t8").found());
  CHECK(worker.status().incarnation == incarnation);
}

TEST_CASE("a removal travels like a change, and uncovers the bucket") {
  DaemonHost host;
  host.sql(
      "INSERT INTO shard_directory (entry_id, shard_id) WITH RECURSIVE n(i) AS (SELECT 0 UNION "
      "ALL SELECT i + 1 FROM n WHERE i < 15) SELECT 'bucket:' || i, 'beta' FROM n");
  host.add_tenants(5);
  host.serve();
  const Reader worker = host.reader();
  CHECK(worker.resolve("t3").shard().name() == "alpha");
  host.forget("t3");
  CHECK(sees(worker, "t3", "beta"));
  CHECK(worker.resolve("t3").source() == RouteSource::bucket);
}

TEST_CASE("a hash directory serves the shards it has, and the others as they are added") {
  DaemonHost host;
  const std::string path = host.file("hash.db");
  REQUIRE(run_program(FINGERPOST_PROGRAM, {"init", "--fallback", "hash", "--hash-shards",
                                           "alpha,beta,gamma", "--directory", path})
              .status == 0);

  {
    SqliteDb db(path, SqliteDb::Mode::read_write);
    db.exec("DROP TRIGGER shard_topology_in_use");
    db.exec("DELETE FROM shard_topology WHERE shard_id = 'gamma'");
  }
  host.serve({"--directory", path});
  const Reader worker = host.reader();
  const auto count = [&](const std::string& shard) {
    int found = 0;
    for (int i = 0; i < 300; ++i)
      found += worker.resolve("h" + std::to_string(i)).shard().name() == shard;
    return found;
  };
  CHECK(count("alpha") > 50);
  CHECK(count("beta") > 50);
  CHECK(count("gamma") == 0);
  REQUIRE(run_program(FINGERPOST_PROGRAM, {"shard", "add", "gamma", "--directory", path}).status ==
          0);
  REQUIRE(eventually([&] { return count("gamma") > 50; }));
  CHECK(count("alpha") + count("beta") + count("gamma") == 300);
  CHECK(worker.resolve("h1").source() == RouteSource::hash);
}
