// What the triggers make of plain SQL, as anybody may type it: no verb, no help from the program.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "tests/sample_directory.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

struct Fixture {
  TempFolder folder;
  std::string path = folder.file("directory.db");
  std::optional<SqliteDb> db;

  Fixture() {
    make_sample_directory(path);
    db.emplace(path, SqliteDb::Mode::read_write);
  }

  void run(const std::string& sql) { db->exec(sql); }

  // What SQLite says against it; empty if it took it.
  std::string complaint(const std::string& sql) {
    try {
      db->exec(sql);
    } catch (const SqliteError& error) {
      return error.what();
    }
    return {};
  }

  bool refused(const std::string& sql, const std::string& because) {
    const std::int64_t before = version();
    const std::string said = complaint(sql);
    CAPTURE(said);
    return said.find(because) != std::string::npos && version() == before;
  }

  std::int64_t integer(const std::string& sql) { return db->integer(sql); }
  std::int64_t version() { return integer("SELECT version FROM directory_version"); }
  std::int64_t epoch(const std::string& id) {
    return integer("SELECT epoch FROM shard_directory WHERE entry_id = '" + id + "'");
  }
  std::string text(const std::string& sql) {
    SqliteStatement select = db->prepare(sql);
    REQUIRE(select.step());
    return std::string(select.text(0));
  }
  std::string row(const std::string& id) {
    return text(
        "SELECT shard_id || ' ' || state || coalesce(' ' || target_shard, '') FROM shard_directory "
        "WHERE entry_id = '" +
        id + "'");
  }
  std::string last_change() {
    return text(
        "SELECT entry_id || ': ' || coalesce(shard_before || ' ' || state_before || ' ' || "
        "epoch_before, 'nothing') "
        "|| ' -> ' || coalesce(shard_after || ' ' || state_after, 'nothing') "
        "FROM directory_history ORDER BY version DESC LIMIT 1");
  }

  // Every version up to the counter has its one row, no nonce is there twice, and every epoch is
  // the version of a history row that says what the entry is.
  void check_chain() {
    CHECK(integer("SELECT count(*) FROM directory_history") == version());
    CHECK(integer("SELECT max(version) FROM directory_history") == version());
    CHECK(integer("SELECT count(DISTINCT nonce) FROM directory_history WHERE nonce >= 0") ==
          version());
    CHECK(
        integer(
            "SELECT count(*) FROM shard_directory AS d WHERE NOT EXISTS (SELECT 1 FROM "
            "directory_history AS h "
            "WHERE h.version = d.epoch AND h.entry_id = d.entry_id AND h.shard_after = d.shard_id "
            "AND h.state_after = d.state AND h.target_after IS d.target_shard)") == 0);
    CHECK(
        integer(
            "SELECT count(*) FROM shard_load AS l WHERE tenants <> (SELECT count(*) FROM "
            "shard_directory AS d "
            "WHERE d.shard_id = l.shard_id AND state <> 'DELETED' AND entry_id NOT LIKE 'bucket:%' "
            "AND entry_id NOT LIKE 'part:%')") == 0);
  }
};

TEST_CASE_FIXTURE(Fixture, "every row that an UPDATE changes takes a version of its own, once") {
  run("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('a', 'alpha'), ('b', 'alpha'), "
      "('c', 'beta')");
  const std::int64_t before = version();
  // The stamp moves a row along the very index that this condition walks.
  run("UPDATE shard_directory SET shard_id = 'gamma' WHERE epoch > 0");
  CHECK(version() == before + 3);
  CHECK(integer("SELECT count(DISTINCT epoch) FROM shard_directory WHERE epoch > " +
                std::to_string(before)) == 3);
  CHECK(integer("SELECT count(*) FROM shard_directory WHERE updated_at GLOB '20*Z'") == 3);
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "an UPDATE that changes nothing takes no version") {
  put_tenant(*db, "a", "alpha");
  const std::int64_t before = version();
  run("UPDATE shard_directory SET shard_id = 'alpha', state = 'ACTIVE', target_shard = NULL, epoch "
      "= epoch");
  run("UPDATE shard_topology SET weight = 7, region = 'eu' WHERE shard_id = 'alpha'");
  CHECK(version() == before);
}

TEST_CASE_FIXTURE(
    Fixture, "INSERT OR REPLACE and upserts are changes, and history knows the row from before") {
  put_tenant(*db, "a", "alpha");
  const std::int64_t first = epoch("a");
  run("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id, state, epoch) VALUES ('a', "
      "'beta', 'FROZEN', 1)");
  CHECK(row("a") == "beta FROZEN");
  CHECK(epoch("a") == first + 1);
  CHECK(last_change() == "a: alpha ACTIVE " + std::to_string(first) + " -> beta FROZEN");
  run("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('a', 'gamma') "
      "ON CONFLICT (entry_id) DO UPDATE SET shard_id = excluded.shard_id");
  CHECK(last_change() == "a: beta FROZEN " + std::to_string(first + 1) + " -> gamma FROZEN");
  run("INSERT OR IGNORE INTO shard_directory (entry_id, shard_id) VALUES ('a', 'alpha')");
  CHECK(epoch("a") == first + 2);
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "a bare DELETE says DELETED, once, and the row stays") {
  put_tenant(*db, "a", "alpha");
  run("UPDATE shard_directory SET state = 'MIGRATING', target_shard = 'beta' WHERE entry_id = 'a'");
  const std::int64_t before = version();
  run("DELETE FROM shard_directory WHERE entry_id = 'a'");
  CHECK(row("a") == "alpha DELETED");
  CHECK(epoch("a") == before + 1);
  run("DELETE FROM shard_directory WHERE entry_id = 'a'");
  CHECK(version() == before + 1);
  check_chain();
}

TEST_CASE_FIXTURE(
    Fixture, "DELETE without a condition deletes every tenant and loses no row, but not a bucket") {
  run("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('a', 'alpha'), ('b', 'beta')");
  run("DELETE FROM shard_directory");
  CHECK(integer("SELECT count(*) FROM shard_directory WHERE state = 'DELETED'") == 2);
  run("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:3', 'alpha')");
  CHECK(refused("DELETE FROM shard_directory", "a bucket or a part cannot be DELETED"));
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "delete and re-create in one transaction keeps the epoch growing") {
  put_tenant(*db, "a", "alpha");
  const std::int64_t first = epoch("a");
  run("BEGIN; DELETE FROM shard_directory WHERE entry_id = 'a'; "
      "INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('a', 'beta'); COMMIT");
  CHECK(row("a") == "beta ACTIVE");
  CHECK(epoch("a") == first + 2);
  // A plain INSERT does not revive what is known to be gone: the row is there.
  run("DELETE FROM shard_directory WHERE entry_id = 'a'");
  CHECK(refused("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('a', 'beta')",
                "UNIQUE constraint"));
  check_chain();
}

TEST_CASE_FIXTURE(
    Fixture, "with recursive triggers on, changes are stamped the same and REPLACE is refused") {
  put_tenant(*db, "a", "alpha");
  run("PRAGMA recursive_triggers = ON");
  const std::int64_t first = epoch("a");
  run("UPDATE shard_directory SET shard_id = 'beta'");
  CHECK(epoch("a") == first + 1);
  CHECK(refused("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('a', 'gamma')",
                "UNIQUE constraint"));
  CHECK(row("a") == "beta ACTIVE");
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "nobody sets an epoch by hand, names it or not") {
  run("INSERT INTO shard_directory (entry_id, shard_id, epoch) VALUES ('a', 'alpha', 4000000), "
      "('b', 'alpha', -1)");
  CHECK(epoch("a") == version() - 1);
  CHECK(epoch("b") == version());
  for (const char* by_hand :
       {"UPDATE shard_directory SET epoch = epoch + 1",
        "UPDATE shard_directory SET epoch = 0 WHERE entry_id = 'b'",
        "UPDATE shard_directory SET shard_id = 'beta', epoch = epoch + 1",
        // The counter's value belongs to the row that the version changed, and to no other.
        "UPDATE shard_directory SET epoch = (SELECT version FROM directory_version) WHERE entry_id "
        "= 'a'",
        "UPDATE shard_topology SET epoch = 999"}) {
    CAPTURE(by_hand);
    CHECK(refused(by_hand, "epoch is set by triggers"));
  }
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "an id is checked where SQL can check it") {
  const std::string insert = "INSERT INTO shard_directory (entry_id, shard_id) VALUES (";
  const std::string no_id = "entry_id must be 1 to 255 bytes";
  CHECK(refused(insert + "'', 'alpha')", no_id));
  CHECK(refused(insert + "'a' || char(10) || 'b', 'alpha')", no_id));
  CHECK(refused(insert + "'a' || char(31), 'alpha')", no_id));
  CHECK(refused(insert + "char(127), 'alpha')", no_id));
  CHECK(refused(insert + "CAST(x'610062' AS TEXT), 'alpha')", no_id));
  CHECK(refused(insert + "printf('%256s', 'a'), 'alpha')", no_id));
  CHECK(refused(insert + "x'61', 'alpha')", "cannot store BLOB"));
  CHECK(refused(insert + "NULL, 'alpha')", "NOT NULL"));
  for (const char* id : {"bucket:16", "bucket:01", "bucket:", "bucket:x", "bucket:-1", "bucket: 1",
                         "bucket:1.0", "bucket:99999999999999999999"}) {
    CAPTURE(id);
    CHECK(refused(insert + "'" + id + "', 'alpha')", "a bucket is"));
  }
  for (const char* id :
       {"part:", "part:1", "part:1:", "part:1024:a", "part:01:a", "part:x:a", "part:1:bucket:2"}) {
    CAPTURE(id);
    CHECK(refused(insert + "'" + id + "', 'alpha')", "a part is"));
  }
  CHECK(refused(insert + "'part:1023:' || printf('%256s', 'a'), 'alpha')", no_id));
  run(insert +
      "'größe ^]-[', 'alpha'), ('bucket:0', 'alpha'), ('bucket:15', 'alpha'), ('a:b', 'alpha'), "
      "(printf('%255s', 'a'), 'alpha')");
  run("INSERT INTO directory_split (entry_id, parts) VALUES ('a:b', 1024), (printf('%255s', 'a'), "
      "2)");
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "a directory without buckets takes none") {
  TempFolder other;
  SqliteDb plain(other.file("plain.db"), SqliteDb::Mode::create);
  plain.exec(std::string(kSchemaSql));
  plain.exec(
      "INSERT INTO directory_layout (id, directory_id, fallback, schema_version) VALUES (1, 'x', "
      "'none', 1)");
  plain.exec("INSERT INTO shard_topology (shard_id) VALUES ('alpha')");
  CHECK_THROWS_AS(
      plain.exec("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:0', 'alpha')"),
      SqliteError);
}

TEST_CASE_FIXTURE(Fixture, "shards must be known, states too, and an id never changes") {
  put_tenant(*db, "a", "alpha");
  CHECK(refused("UPDATE shard_directory SET shard_id = 'nowhere'", "shard_id names no shard"));
  CHECK(refused("UPDATE shard_directory SET target_shard = 'nowhere'",
                "target_shard names no shard"));
  CHECK(refused("UPDATE shard_directory SET state = 'ACTVE'", "state must be"));
  CHECK(refused("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('b', 'nowhere')",
                "shard_id names no shard"));
  CHECK(refused(
      "INSERT INTO shard_directory (entry_id, shard_id, state) VALUES ('b', 'beta', 'active')",
      "state must be"));
  CHECK(
      refused("INSERT OR IGNORE INTO shard_directory (entry_id, shard_id) VALUES ('b', 'nowhere')",
              "shard_id names"));
  CHECK(refused("UPDATE shard_directory SET entry_id = 'z'", "cannot be renamed"));
  CHECK(
      refused("INSERT INTO shard_directory (entry_id, shard_id, state) VALUES ('bucket:1', 'beta', "
              "'DELETED')",
              "a bucket or a part cannot be DELETED"));
  run("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:1', 'beta')");
  CHECK(refused("UPDATE shard_directory SET state = 'DELETED'",
                "a bucket or a part cannot be DELETED"));
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "a shard in use stays, its name too, and its row is checked") {
  put_tenant(*db, "a", "alpha");
  run("UPDATE shard_directory SET state = 'MIGRATING', target_shard = 'beta'");
  CHECK(refused("DELETE FROM shard_topology WHERE shard_id = 'alpha'", "still named by an entry"));
  CHECK(refused("DELETE FROM shard_topology WHERE shard_id = 'beta'", "still named by an entry"));
  CHECK(refused("UPDATE shard_topology SET shard_id = 'omega' WHERE shard_id = 'gamma'",
                "cannot be renamed"));
  const std::string set = "UPDATE shard_topology SET ";
  for (const char* address : {"u:p@h", "postgres://u:p@h:5432/x", "postgresql://:p@h"}) {
    CHECK(refused(set + "primary_address = '" + address + "'", "user:password@"));
    CHECK(refused(set + "replicas = json_array('h:1', '" + address + "')", "user:password@"));
  }
  CHECK(refused(set + "replicas = '{}'", "replicas must be"));
  CHECK(refused(set + "replicas = '[1]'", "replicas must be"));
  CHECK(refused(set + "replicas = 'h:1'", "replicas must be"));
  CHECK(refused(set + "attributes = '[]'", "attributes must be"));
  CHECK(refused(set + "attributes = '{\"a\":1}'", "attributes must be"));
  CHECK(refused(set + "region = printf('%1025s', 'x')", "at most 1024 bytes"));
  CHECK(refused(set + "weight = -1", "CHECK constraint"));
  CHECK(refused("INSERT INTO shard_topology (shard_id) VALUES (printf('%33s', 'x'))",
                "1 to 32 bytes"));
  run(set +
      "primary_address = 'postgres://reader@h:5432', replicas = '[\"[::1]:5432\"]' WHERE shard_id "
      "= 'gamma'");
  const std::int64_t changed = version();
  CHECK(integer("SELECT topology_epoch FROM directory_layout") == changed);
  run("DELETE FROM shard_topology WHERE shard_id = 'gamma'");
  CHECK(version() == changed + 1);
  CHECK(integer("SELECT topology_epoch FROM directory_layout") == changed + 1);
  check_chain();
}

TEST_CASE_FIXTURE(Fixture, "the layout, the counter and the history cannot be rewritten") {
  const std::string never = "never change after init";
  CHECK(refused("UPDATE directory_layout SET buckets = 32", never));
  CHECK(refused("UPDATE directory_layout SET fallback = 'none', buckets = 0", never));
  CHECK(refused("UPDATE directory_layout SET directory_id = 'x'", never));
  CHECK(refused("DELETE FROM directory_layout", "keeps its one row"));
  CHECK(
      refused("INSERT OR REPLACE INTO directory_layout (id, directory_id, buckets, fallback, "
              "schema_version) "
              "VALUES (1, 'x', 32, 'buckets', 1)",
              "its one row already"));
  CHECK(refused("UPDATE directory_layout SET epoch = 99", "set by triggers"));
  CHECK(refused("UPDATE directory_layout SET topology_epoch = 99", "set by triggers"));
  CHECK(refused("UPDATE directory_version SET version = version - 1", "only grows"));
  CHECK(refused("UPDATE directory_version SET version = 9223372036854775807", "up to 2^62"));
  CHECK(refused("UPDATE directory_layout SET replay_floor = 99999", "up to the version"));
  CHECK(refused("INSERT OR REPLACE INTO directory_version VALUES (1, 0)", "its one row already"));
  CHECK(refused("DELETE FROM directory_version", "keeps its one row"));
  CHECK(refused("DELETE FROM directory_history", "never pruned"));
  CHECK(refused("UPDATE directory_history SET nonce = 1", "never rewritten"));
  // As the customary schema asks of its writers: harmless here.
  run("UPDATE directory_version SET version = version + 1");
  check_chain();
}

TEST_CASE_FIXTURE(
    Fixture, "a removal is announced by a verb, leaves a version, and re-stamps what it uncovers") {
  run("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:5', 'alpha'), ('a', "
      "'alpha'), ('b', 'alpha')");
  CHECK(refused("INSERT INTO directory_removed (entry_id, uncovers) VALUES ('a', 'bucket:5')",
                "only tenant forget"));
  run("INSERT INTO directory_session VALUES (1, 'me@here', 'tenant forget', NULL)");
  CHECK(refused("INSERT INTO directory_removed (entry_id) VALUES ('a')", "must name the bucket"));
  CHECK(refused("INSERT INTO directory_removed (entry_id, uncovers) VALUES ('z', 'bucket:5')",
                "no such entry"));
  CHECK(refused("INSERT INTO directory_removed (entry_id, uncovers) VALUES ('bucket:5', NULL)",
                "cannot be removed"));
  const std::int64_t before = version();
  // The announcement lets exactly that row go.
  run("INSERT INTO directory_removed (entry_id, uncovers) VALUES ('a', 'bucket:5'); "
      "DELETE FROM shard_directory WHERE entry_id IN ('a', 'b')");
  CHECK(integer("SELECT count(*) FROM shard_directory WHERE entry_id = 'a'") == 0);
  CHECK(row("b") == "alpha DELETED");
  const std::int64_t removed =
      integer("SELECT version FROM directory_removed WHERE entry_id = 'a'");
  CHECK(removed > before);
  CHECK(epoch("bucket:5") > removed);
  check_chain();

  SUBCASE("created again, the id leaves the list and has no row from before") {
    put_tenant(*db, "a", "beta");
    CHECK(integer("SELECT count(*) FROM directory_removed") == 0);
    CHECK(last_change() == "a: nothing -> beta ACTIVE");
    CHECK(integer("SELECT replay_floor FROM directory_layout") == 0);
  }
  SUBCASE("forgotten from the list, it raises the floor below which a syncer must reload") {
    run("DELETE FROM directory_removed");
    CHECK(integer("SELECT replay_floor FROM directory_layout") == removed);
    CHECK(refused("UPDATE directory_layout SET replay_floor = 0", "only grows"));
  }
  check_chain();
}

TEST_CASE(
    "where hash decides, a removal gives every route by hash a new epoch, and a hash shard stays") {
  TempFolder folder;
  SqliteDb db(folder.file("hash.db"), SqliteDb::Mode::create);
  db.exec(std::string(kSchemaSql));
  db.exec(
      "INSERT INTO directory_layout (id, directory_id, fallback, hash_shards, schema_version) "
      "VALUES (1, 'x', 'hash', '[\"alpha\",\"beta\"]', 1)");
  db.exec("INSERT INTO shard_topology (shard_id) VALUES ('alpha'), ('beta')");
  put_tenant(db, "a", "alpha");
  db.exec("INSERT INTO directory_session VALUES (1, 'me@here', 'tenant forget', NULL)");
  db.exec("INSERT INTO directory_removed (entry_id) VALUES ('a'); DELETE FROM shard_directory");
  CHECK(db.integer("SELECT epoch FROM directory_layout") ==
        db.integer("SELECT version FROM directory_removed"));
  CHECK_THROWS_WITH_AS(db.exec("DELETE FROM shard_topology WHERE shard_id = 'beta'"),
                       doctest::Contains("hash list"), SqliteError);
}

}  // namespace
}  // namespace fingerpost
