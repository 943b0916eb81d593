#include "syncer/syncer.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "shm/segment_path.h"
#include "syncer/host_approval.h"
#include "syncer/snapshot_reader.h"
#include "tests/syncer_host.h"

using namespace fingerpost;
namespace fs = std::filesystem;

namespace {

void add_tenants(const SyncerHost& host, int count) {
  SqliteDb db = host.db();
  put_tenants(db, count, "alpha");
}

std::uint64_t version_of(const SyncerHost& host) {
  return static_cast<std::uint64_t>(host.db().integer("SELECT version FROM directory_version"));
}

}  // namespace

TEST_CASE("every kind of plain SQL change reaches a running worker") {
  SyncerHost host;
  host.serve();
  const Reader worker = host.reader();
  CHECK(worker.resolve("acme").answer() == Answer::unknown);
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('acme', 'alpha')");
  REQUIRE(host.sees(worker, "acme", "alpha"));
  CHECK(worker.resolve("acme").source() == RouteSource::override_entry);
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 'acme'");
  REQUIRE(host.sees(worker, "acme", "beta"));
  host.sql("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('acme', 'gamma')");
  REQUIRE(host.sees(worker, "acme", "gamma"));
  const std::uint64_t epoch = worker.resolve("acme").epoch();
  host.sql("DELETE FROM shard_directory WHERE entry_id = 'acme'");
  REQUIRE(host.turn_until([&] { return worker.resolve("acme").answer() == Answer::deleted; }));
  CHECK(worker.resolve("acme").epoch() > epoch);
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:3', 'beta')");
  REQUIRE(host.turn_until([&] { return worker.version() == version_of(host); }));
  bool any = false;
  for (int i = 0; i < 200 && !any; ++i) {
    const Route route = worker.resolve("stranger" + std::to_string(i));
    any = route.source() == RouteSource::bucket && route.shard().name() == "beta";
  }
  CHECK(any);
  CHECK(worker.undetermined_count() == 0);
}

TEST_CASE("a failover changes the address of every tenant at once and touches no tenant") {
  SyncerHost host;
  add_tenants(host, 500);
  host.serve();
  const Reader worker = host.reader();
  const std::uint64_t epoch = worker.resolve("t7").epoch();
  CHECK(worker.resolve("t7").shard().primary() == "10.0.0.1:5432");
  host.sql("UPDATE shard_topology SET primary_address = '10.9.9.9:5432' WHERE shard_id = 'alpha'");
  REQUIRE(
      host.turn_until([&] { return worker.resolve("t7").shard().primary() == "10.9.9.9:5432"; }));
  CHECK(worker.resolve("t499").shard().primary() == "10.9.9.9:5432");
  CHECK(worker.resolve("t7").epoch() == epoch);
}

TEST_CASE("wait_version returns when this host serves the commit") {
  SyncerHost host;
  host.serve();
  const Reader worker = host.reader();
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('acme', 'beta')");
  const std::uint64_t version = version_of(host);
  Status waited(Code::internal, "not yet");
  std::thread waiter([&] { waited = worker.wait_version(version, std::chrono::seconds(8)); });
  REQUIRE(host.turn_until([&] { return worker.version() >= version; }));
  waiter.join();
  CHECK_MESSAGE(waited.ok(), waited.message());
  CHECK(worker.resolve("acme").shard().name() == "beta");
  CHECK(worker.wait_version(version + 1, std::chrono::milliseconds(30)).code() == Code::timeout);
}

TEST_CASE("growth goes on under changes, and no lookup notices") {
  SyncerHost host;
  add_tenants(host, 1'000);
  host.serve();
  const Reader worker = host.reader();
  const std::uint64_t generation = worker.generation();
  for (int round = 0; round < 20; ++round) {
    host.sql(
        "INSERT INTO shard_directory (entry_id, shard_id) WITH RECURSIVE n(i) AS (SELECT 0 UNION "
        "ALL SELECT i + 1 FROM n "
        "WHERE i < 99) SELECT 'r" +
        std::to_string(round) + "-' || i, 'beta' FROM n");
    host.sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = 't" +
             std::to_string(round % 9) + "'");
    host.turn_for(std::chrono::milliseconds(15));
    CHECK(worker.resolve("t500").shard().name() == "alpha");
  }
  REQUIRE(host.turn_until([&] { return worker.version() == version_of(host); }));
  CHECK(worker.generation() > generation);
  for (int round = 0; round < 20; ++round)
    CHECK(worker.resolve("r" + std::to_string(round) + "-99").found());
  CHECK(worker.undetermined_count() == 0);
}

TEST_CASE("a syncer killed at any moment is followed by one that adopts the same segment") {
  SyncerHost host;
  add_tenants(host, 2'000);
  host.serve();
  const Reader worker = host.reader();
  std::mt19937 random(7);
  int commits = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 5; ++i) {
      const int tenant = static_cast<int>(random() % 2'000);
      host.sql(
          "UPDATE shard_directory SET state = CASE state WHEN 'ACTIVE' THEN 'FROZEN' ELSE 'ACTIVE' "
          "END WHERE entry_id = 't" +
          std::to_string(tenant) + "'");
      host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('n" +
               std::to_string(commits++) + "', 'beta')");
    }
    for (auto turns = random() % 6; turns > 0; --turns) host.turn();
    host.kill();
    CHECK(worker.resolve("t1").found());  // nobody is there, and it goes on
    const Status started = host.start();
    REQUIRE_MESSAGE(started.ok(), started.message());
  }
  REQUIRE(host.turn_until([&] { return worker.version() == version_of(host); }));
  for (int i = 0; i < commits; ++i) CHECK(worker.resolve("n" + std::to_string(i)).found());
  CHECK(count_of(worker, Counter::adoptions) == 40);
  CHECK(count_of(worker, Counter::supersedes) == 0);
  CHECK(worker.undetermined_count() == 0);
}

TEST_CASE("a second syncer on the same name is refused while the first one lives") {
  SyncerHost host;
  host.serve();
  Log log;
  const auto second = Syncer::start(host.options, log);
  REQUIRE_FALSE(second.ok());
  CHECK(second.status().code() == Code::busy);
  host.kill();
  CHECK(Syncer::start(host.options, log).ok());
}

TEST_CASE(
    "a segment whose name was removed under a running syncer gets a successor, and workers move "
    "over") {
  SyncerHost host;
  add_tenants(host, 300);
  host.serve();
  const Reader worker = host.reader();
  REQUIRE(::unlink(host.segment_path().c_str()) == 0);
  REQUIRE(host.turn_until([&] { return fs::exists(host.segment_path()); }));
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't5'");
  REQUIRE(host.sees(worker, "t5", "beta"));
  CHECK(worker.resolve("t299").shard().name() == "alpha");
  CHECK(count_of(worker, Counter::supersedes) == 1);
}

TEST_CASE(
    "a segment removed while the syncer is dead: old workers move to the one that the next syncer "
    "makes") {
  SyncerHost host;
  add_tenants(host, 300);
  host.serve();
  const Reader worker = host.reader();
  host.kill();
  REQUIRE(::unlink(host.segment_path().c_str()) == 0);
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't5'");
  host.serve();
  REQUIRE(host.sees(worker, "t5", "beta"));
}

TEST_CASE(
    "with the directory gone every known tenant resolves as before, and on its return the syncer "
    "catches up") {
  SyncerHost host;
  add_tenants(host, 50);
  host.options.freshness.stale_after = std::chrono::milliseconds(60);
  host.serve();
  const Reader worker = host.reader();
  fs::rename(host.directory_path(), host.file("away.db"));
  REQUIRE(host.turn_until([&] { return worker.status().source_state == "unavailable"; }));
  host.turn_for(std::chrono::milliseconds(150));
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  CHECK(worker.stale());
  CHECK(worker.ready());
  CHECK(*worker.age() > std::chrono::milliseconds(60));
  CHECK_FALSE(worker.status().last_error.empty());
  fs::rename(host.file("away.db"), host.directory_path());
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't5'");
  REQUIRE(host.sees(worker, "t5", "beta"));
  REQUIRE(host.turn_until([&] { return worker.status().source_state == "ok"; }));
}

TEST_CASE("a source that fails is not asked at every hint, and soon after what brings it back") {
  SyncerHost host;
  add_tenants(host, 50);
  host.serve();
  const Reader worker = host.reader();
  fs::rename(host.directory_path(), host.file("away.db"));
  REQUIRE(host.turn_until([&] { return worker.status().source_state == "unavailable"; }));
  const std::uint64_t before = count_of(worker, Counter::sync_failures);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < until) {
    host.syncer().watch_fired();
    REQUIRE(host.turn());
  }
  CHECK(count_of(worker, Counter::sync_failures) - before <= 10);
  fs::rename(host.file("away.db"), host.directory_path());
  host.syncer().watch_fired();
  const auto back = std::chrono::steady_clock::now();
  REQUIRE(host.turn_until([&] { return worker.status().source_state == "ok"; }));
  CHECK(std::chrono::steady_clock::now() - back < std::chrono::seconds(1));
}

TEST_CASE(
    "a directory restored to an older state is noticed by its nonces and loaded as a new "
    "incarnation") {
  SyncerHost host;
  add_tenants(host, 100);
  host.serve();
  const Reader worker = host.reader();
  const std::uint64_t incarnation = worker.status().incarnation;
  copy_database(host.directory_path(), host.file("backup.db"));
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't5'");
  REQUIRE(host.sees(worker, "t5", "beta"));
  replace_database(host.directory_path(), host.file("backup.db"));
  REQUIRE(host.sees(worker, "t5", "alpha"));
  REQUIRE(host.turn_until([&] { return worker.status().incarnation > incarnation; }));
  CHECK(count_of(worker, Counter::history_changes) == 1);
  // The restored history goes on.
  host.sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = 't6'");
  REQUIRE(host.sees(worker, "t6", "gamma"));
}

TEST_CASE("a restored directory that would move many tenants waits for an approval") {
  SyncerHost host;
  add_tenants(host, 100);
  host.serve();
  const Reader worker = host.reader();
  copy_database(host.directory_path(), host.file("backup.db"));
  host.sql("INSERT INTO directory_approval VALUES (1000000, 'test', 'now')");
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id LIKE 't%'");
  REQUIRE(host.sees(worker, "t5", "beta"));
  replace_database(host.directory_path(), host.file("backup.db"));
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::withheld) == 100; }));
  host.turn_for(std::chrono::milliseconds(200));
  CHECK(worker.resolve("t5").shard().name() == "beta");
  host.sql("INSERT INTO directory_approval VALUES (" + std::to_string(version_of(host)) +
           ", 'test', 'now')");
  REQUIRE(host.sees(worker, "t5", "alpha"));
  CHECK(count_of(worker, Counter::withheld) == 0);
}

TEST_CASE("an approval for this host lets through what waits, in the history that is served") {
  SyncerHost host;
  add_tenants(host, 100);
  host.serve();
  const Reader worker = host.reader();
  const auto approve = [&](std::uint64_t incarnation) {
    const Status written = write_host_approval(
        host.segment_path(),
        {worker.status().directory_id, incarnation, static_cast<std::uint64_t>(version_of(host))});
    REQUIRE_MESSAGE(written.ok(), written.message());
  };
  copy_database(host.directory_path(), host.file("backup.db"));
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id LIKE 't%'");
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::withheld) == 100; }));
  approve(worker.status().incarnation + 1);  // of another history: allows nothing
  host.turn_for(std::chrono::milliseconds(200));
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  approve(worker.status().incarnation);
  REQUIRE(host.sees(worker, "t5", "beta"));
  CHECK(count_of(worker, Counter::withheld) == 0);

  // A restored directory: what was approved before says nothing of it.
  replace_database(host.directory_path(), host.file("backup.db"));
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('new', 'beta')");
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::withheld) != 0; }));
  CHECK(worker.resolve("t5").shard().name() == "beta");
  approve(worker.status().incarnation);
  REQUIRE(host.sees(worker, "t5", "alpha"));
  fs::remove(approval_path(host.segment_path()));
}

TEST_CASE("an approval outlives its segment, and the next one is loaded as ever") {
  SyncerHost host;
  add_tenants(host, 100);
  host.serve();
  {
    const Reader worker = host.reader();
    REQUIRE(write_host_approval(host.segment_path(),
                                {worker.status().directory_id, worker.status().incarnation, 1})
                .ok());
  }
  host.kill();
  fs::remove(host.segment_path());
  host.serve();
  CHECK(host.reader().resolve("t5").found());
}

TEST_CASE("an approval that somebody else can write allows nothing") {
  SyncerHost host;
  add_tenants(host, 100);
  host.serve();
  const Reader worker = host.reader();
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id LIKE 't%'");
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::withheld) == 100; }));
  const HostApproval given{worker.status().directory_id, worker.status().incarnation,
                           static_cast<std::uint64_t>(version_of(host))};
  REQUIRE(write_host_approval(host.segment_path(), given).ok());
  const std::string path = approval_path(host.segment_path());
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  CHECK(read_host_approval(host.segment_path()).status().code() == Code::wrong_owner);
  host.turn_for(std::chrono::milliseconds(200));
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  fs::remove(path);
  fs::create_symlink(host.file("elsewhere"), path);
  CHECK_FALSE(read_host_approval(host.segment_path()).ok());
  fs::remove(path);
  std::ofstream(path) << "no approval\n";
  CHECK(read_host_approval(host.segment_path()).status().code() == Code::corrupt);
}

TEST_CASE(
    "an emptied table is withheld, the rest of the batch is not, and an approval lets it through") {
  SyncerHost host;
  add_tenants(host, 200);
  host.serve();
  const Reader worker = host.reader();
  host.sql(
      "BEGIN; DELETE FROM shard_directory; INSERT INTO shard_directory (entry_id, shard_id) VALUES "
      "('new', 'beta'); COMMIT");
  REQUIRE(host.sees(worker, "new", "beta"));
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  CHECK(count_of(worker, Counter::withheld) == 200);
  CHECK(worker.status().replay_from > 0);
  host.kill();  // what is withheld survives
  host.serve();
  host.turn_for(std::chrono::milliseconds(100));
  CHECK(worker.resolve("t5").found());
  host.sql("INSERT INTO directory_approval VALUES (" + std::to_string(version_of(host)) +
           ", 'test', 'now')");
  REQUIRE(host.turn_until([&] { return worker.resolve("t5").answer() == Answer::deleted; }));
  REQUIRE(host.turn_until([&] { return worker.status().replay_from == 0; }));
}

TEST_CASE(
    "another directory under the same path is refused at run time and at start, and the old data "
    "stays") {
  SyncerHost host;
  add_tenants(host, 50);
  host.serve();
  const Reader worker = host.reader();
  SyncerHost other;
  other.sql("DROP TRIGGER IF EXISTS directory_layout_fixed");
  copy_database(other.directory_path(), host.file("other.db"));
  {
    SqliteDb db(host.file("other.db"), SqliteDb::Mode::read_write);
    std::string triggers;
    auto row = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
    while (row.step()) triggers += "DROP TRIGGER " + std::string(row.text(0)) + ";";
    db.exec(triggers);
    db.exec("UPDATE directory_layout SET directory_id = 'ffffffff-0000-4000-8000-000000000001'");
  }
  replace_database(host.directory_path(), host.file("other.db"));
  REQUIRE(host.turn_until([&] { return worker.status().source_state == "other_directory"; }));
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  CHECK(worker.stale());
  host.kill();
  const Status started = host.start();
  CHECK(started.code() == Code::other_directory);
  CHECK(started.message().find("ffffffff-0000-4000-8000-000000000001") != std::string::npos);
  CHECK(started.message().find(kSampleDirectoryId) != std::string::npos);
}

TEST_CASE(
    "a snapshot serves a host whose directory is gone, marked stale, and the next start catches "
    "up") {
  SyncerHost host;
  add_tenants(host, 500);
  host.serve();
  host.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  const Reader before = host.reader();
  REQUIRE(host.turn_until([&] { return before.version() == version_of(host); }));
  host.stop();
  fs::remove(host.segment_path());
  fs::rename(host.directory_path(), host.file("away.db"));
  REQUIRE(host.start().ok());
  REQUIRE(host.turn_until([&] { return fs::exists(host.segment_path()); }));
  const Reader worker = host.reader();
  CHECK(worker.resolve("t5").state() == State::frozen);
  CHECK_FALSE(worker.resolve("t5").writable());
  CHECK(worker.resolve("t499").shard().primary() == "10.0.0.1:5432");
  REQUIRE(host.turn_until([&] { return worker.ready(); }));
  CHECK(worker.stale());
  CHECK(worker.status().serving == "snapshot");
  fs::rename(host.file("away.db"), host.directory_path());
  host.sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 't5'");
  REQUIRE(host.turn_until([&] { return worker.resolve("t5").writable(); }));
  REQUIRE(host.turn_until([&] { return !worker.stale(); }));
}

TEST_CASE(
    "with neither directory nor snapshot there is nothing to serve, until the directory appears") {
  SyncerHost host;
  fs::rename(host.directory_path(), host.file("away.db"));
  REQUIRE(host.start().ok());
  host.turn_for(std::chrono::milliseconds(100));
  CHECK(Reader::open(host.segment_path()).status().code() == Code::absent);
  fs::rename(host.file("away.db"), host.directory_path());
  REQUIRE(host.turn_until([&] { return host.caught_up(); }));
}

TEST_CASE("a table keeps its seed through a snapshot, a start from it, and growth") {
  SyncerHost host;
  add_tenants(host, 300);
  const auto seeds = [&] {
    std::vector<std::uint64_t> found;
    for (const auto& file : fs::directory_iterator(host.options.state_dir)) {
      if (file.path().extension() != ".fps") continue;
      const auto info = inspect_snapshot(file.path());
      REQUIRE(info.ok());
      found.push_back(info->header.seed);
    }
    return found;
  };
  host.serve();
  host.stop();
  REQUIRE(seeds().size() == 1);
  CHECK(seeds().front() != 0);

  REQUIRE(::unlink(host.segment_path().c_str()) == 0);
  host.serve();
  const Reader worker = host.reader();
  SqliteDb db = host.db();
  put_tenants(db, 3'000, "beta", "more");
  REQUIRE(host.sees(worker, "more2999", "beta"));
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::rebuilds) > 0; }));
  host.stop();
  REQUIRE(seeds().size() == 2);
  CHECK(seeds().front() == seeds().back());
}

TEST_CASE("a segment that was cut between two turns is named before it is touched") {
  SyncerHost host;
  host.serve();
  REQUIRE(::truncate(host.segment_path().c_str(), 4'096) == 0);
  const auto sleep = host.syncer().turn();
  CHECK(sleep.status().code() == Code::corrupt);
  CHECK(sleep.status().message().starts_with(host.segment_path() +
                                             " was cut to 4,096 bytes, it had "));
  host.kill();
  host.serve();
}

TEST_CASE("an empty directory of ours is served") {
  SyncerHost host;
  host.serve();
  const Reader worker = host.reader();
  CHECK(worker.ready());
  CHECK(worker.resolve("anybody").answer() == Answer::unknown);
}

TEST_CASE("a full segment says so and harms nobody who is in it") {
  SyncerHost host;
  host.options.capacity = 100;
  add_tenants(host, 100);
  host.serve();
  const Reader worker = host.reader();
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('one-too-many', 'alpha')");
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::refused_for_room) == 1; }));
  CHECK_FALSE(worker.ready());
  CHECK(worker.readiness().reason ==
        "there is no room for all rows: the capacity is reached, or memory is lacking");
  for (int i = 0; i < 100; ++i) CHECK(worker.resolve("t" + std::to_string(i)).found());
  host.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(host.turn_until([&] { return worker.resolve("t5").state() == State::frozen; }));
}

TEST_CASE("a larger capacity at the next start supersedes the segment, and workers follow") {
  SyncerHost host;
  host.options.capacity = 100;
  add_tenants(host, 100);
  host.serve();
  const Reader worker = host.reader();
  host.kill();
  host.options.capacity = 1'000;
  host.serve();
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('one-more', 'beta')");
  REQUIRE(host.sees(worker, "one-more", "beta"));
  CHECK(worker.status().capacity == 1'000);
  CHECK(worker.resolve("t99").found());
}

TEST_CASE(
    "ever new addresses fill the topology, which supersedes the segment, and workers follow") {
  SyncerHost host;
  host.options.topology_bytes = kTopologyBytesMin;
  add_tenants(host, 10);
  host.serve();
  const Reader worker = host.reader();
  std::string address;
  for (int i = 0; i < 60; ++i) {
    address = std::string(900, 'a') + std::to_string(i) + ":1";
    host.sql("UPDATE shard_topology SET primary_address = '" + address +
             "' WHERE shard_id = 'alpha'");
    REQUIRE(host.turn_until([&] {
      worker.poll();
      return worker.resolve("t5").shard().primary() == address;
    }));
  }
  CHECK(count_of(worker, Counter::supersedes) >= 1);
  CHECK(worker.resolve("t9").found());
}

TEST_CASE(
    "a row of an unknown shard is quarantined, survives a kill, and is applied when the shard "
    "arrives") {
  SyncerHost host;
  add_tenants(host, 5);
  host.serve();
  const Reader worker = host.reader();
  host.sql("DROP TRIGGER IF EXISTS shard_directory_shard_known_insert");
  std::string triggers;
  {
    SqliteDb db = host.db();
    auto row = db.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND sql LIKE '%BEFORE INSERT ON "
        "shard_directory %'");
    while (row.step()) triggers += "DROP TRIGGER " + std::string(row.text(0)) + ";";
  }
  host.sql(triggers);
  host.sql(
      "INSERT INTO shard_directory (entry_id, shard_id) VALUES ('early', 'delta'), ('fine', "
      "'beta')");
  REQUIRE(host.sees(worker, "fine", "beta"));
  CHECK(worker.resolve("early").answer() == Answer::unknown);
  CHECK(count_of(worker, Counter::quarantined) == 1);
  CHECK(worker.status().replay_from > 0);
  host.kill();
  host.serve();
  host.sql("INSERT INTO shard_topology (shard_id, primary_address) VALUES ('delta', 'd:1')");
  REQUIRE(host.sees(worker, "early", "delta"));
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::quarantined) == 0; }));
  CHECK(worker.status().replay_from == 0);
}

TEST_CASE("reconciliation finds a row that was changed behind the triggers") {
  SyncerHost host;
  add_tenants(host, 20);
  host.serve();
  const Reader worker = host.reader();
  std::string triggers;
  {
    SqliteDb db = host.db();
    auto row = db.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'shard_directory'");
    while (row.step()) triggers += "DROP TRIGGER " + std::string(row.text(0)) + ";";
  }
  host.sql(triggers);
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't5'");
  host.turn_for(std::chrono::milliseconds(100));
  CHECK(worker.resolve("t5").shard().name() == "alpha");
  host.syncer().reconcile_now();
  REQUIRE(host.sees(worker, "t5", "beta"));
  CHECK(count_of(worker, Counter::repairs) >= 1);
}

TEST_CASE("reconciliation of equal data finds nothing") {
  SyncerHost host;
  add_tenants(host, 500);
  host.serve();
  const Reader worker = host.reader();
  host.syncer().reconcile_now();
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::reconciliations) == 1; }));
  CHECK(count_of(worker, Counter::repairs) == 0);
}
