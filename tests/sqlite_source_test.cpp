#include "syncer/sqlite_source.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "tests/child_process.h"
#include "tests/sample_directory.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

struct Fixture {
  TempFolder folder;
  std::string path = folder.file("directory.db");
  std::unique_ptr<SqliteDb> writer;
  std::unique_ptr<Source> source;

  Fixture() {
    make_sample_directory(path);
    reopen_writer();
    auto opened = open_source("sqlite:" + path);
    REQUIRE(opened.ok());
    source = *std::move(opened);
  }
  void reopen_writer() {
    writer.reset();
    writer = std::make_unique<SqliteDb>(path, SqliteDb::Mode::read_write);
  }

  std::unique_ptr<Batch> changes(const Cursor& from = {}, std::uint64_t replay_from = 0) {
    auto batch = source->read_changes(from, replay_from);
    REQUIRE_MESSAGE(batch.ok(), batch.status().message());
    return *std::move(batch);
  }
  bool changed() {
    const auto answer = source->may_have_changed();
    REQUIRE_MESSAGE(answer.ok(), answer.status().message());
    return *answer;
  }
};

std::string text_of(const Batch& batch) {
  std::string text;
  for (const EntryRow& row : batch.rows) {
    text += fmt::format("{}={}/{}/{}{} ", row.id, row.shard, row.state, row.target,
                        row.by_verb ? "!" : "");
  }
  for (const Removal& removal : batch.removals) text += fmt::format("-{} ", removal.id);
  return text;
}

TEST_CASE("the layout and the topology are read as they were written") {
  Fixture f;
  const auto layout = f.source->read_layout();
  REQUIRE(layout.ok());
  CHECK(to_string(layout->directory_id) == kSampleDirectoryId);
  CHECK(layout->fallback == Fallback::buckets);
  CHECK(layout->buckets == 16);
  CHECK(layout->schema_version == 1);
  const auto batch = f.changes();
  CHECK(batch->kind == Batch::Kind::changes);
  REQUIRE(batch->topology.has_value());
  REQUIRE(batch->topology->size() == 3);
  const ShardSpec alpha{"alpha",
                        "10.0.0.1:5432",
                        {"10.0.1.1:5432", "10.0.1.2:5432"},
                        "eu",
                        7,
                        {{"disk", "ssd"}, {"tier", "gold"}}};
  CHECK((*batch->topology)[0] == alpha);
  CHECK((*batch->topology)[2].name == "gamma");
  CHECK((*batch->topology)[2].weight == 0);
}

TEST_CASE("a sync reads what changed since its cursor, once, in the order of commits") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  put_tenant(*f.writer, "zeta", "beta");
  auto batch = f.changes();
  CHECK(text_of(*batch) == "acme=alpha/ACTIVE/ zeta=beta/ACTIVE/ ");
  const Cursor first = batch->end;
  CHECK(first.nonce != 0);
  batch = f.changes(first);
  CHECK(text_of(*batch) == "");
  CHECK(batch->end == first);
  CHECK_FALSE(batch->topology.has_value());

  f.writer->exec(
      "UPDATE shard_directory SET state = 'MIGRATING', target_shard = 'gamma' WHERE entry_id = "
      "'zeta'");
  f.writer->exec(
      "INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('acme', 'beta')");
  f.writer->exec("DELETE FROM shard_directory WHERE entry_id = 'zeta'");
  batch = f.changes(first);
  CHECK(text_of(*batch) == "acme=beta/ACTIVE/ zeta=beta/DELETED/ ");
  CHECK(batch->rows[0].epoch < batch->rows[1].epoch);
  CHECK(batch->rows[1].epoch == batch->end.version);
}

TEST_CASE("rows not applied are read again from replay_from on") {
  Fixture f;
  put_tenant(*f.writer, "first", "alpha");
  const Cursor after_first = f.changes()->end;
  put_tenant(*f.writer, "second", "alpha");
  const Cursor end = f.changes()->end;
  CHECK(text_of(*f.changes(end)) == "");
  CHECK(text_of(*f.changes(end, end.version)) == "second=alpha/ACTIVE/ ");
  CHECK(text_of(*f.changes(end, after_first.version)) ==
        "first=alpha/ACTIVE/ second=alpha/ACTIVE/ ");
  CHECK(text_of(*f.changes(after_first, end.version + 5)) == "second=alpha/ACTIVE/ ");
}

TEST_CASE("a row that a verb wrote says so, and one by plain SQL does not") {
  Fixture f;
  put_tenant(*f.writer, "by-hand", "alpha");
  f.writer->exec("BEGIN IMMEDIATE");
  f.writer->exec("INSERT INTO directory_session (id, who, verb) VALUES (1, 'me', 'import')");
  put_tenant(*f.writer, "by-verb", "alpha");
  f.writer->exec("DELETE FROM directory_session");
  f.writer->exec("COMMIT");
  CHECK(text_of(*f.changes()) == "by-hand=alpha/ACTIVE/ by-verb=alpha/ACTIVE/! ");
  auto full = f.source->read_all();
  REQUIRE(full.ok());
  EntryRow row;
  while (*(*full)->next(row)) CHECK(row.by_verb == (row.id == "by-verb"));
}

TEST_CASE("a removal travels like a row, and a re-created id leaves the list") {
  Fixture f;
  f.writer->exec("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('bucket:3', 'alpha')");
  put_tenant(*f.writer, "acme", "alpha");
  const Cursor before = f.changes()->end;
  f.writer->exec("BEGIN IMMEDIATE");
  f.writer->exec("INSERT INTO directory_session (id, who, verb) VALUES (1, 'me', 'tenant forget')");
  f.writer->exec("INSERT INTO directory_removed (entry_id, uncovers) VALUES ('acme', 'bucket:3')");
  f.writer->exec("DELETE FROM shard_directory WHERE entry_id = 'acme'");
  f.writer->exec("DELETE FROM directory_session");
  f.writer->exec("COMMIT");
  const auto batch = f.changes(before);
  CHECK(text_of(*batch) == "bucket:3=alpha/ACTIVE/! -acme ");
  CHECK(batch->removals[0].version > before.version);
  CHECK(batch->removals[0].version <= batch->end.version);
  CHECK(text_of(*f.changes(batch->end)) == "");
  put_tenant(*f.writer, "acme", "beta");
  CHECK(text_of(*f.changes(before)).find("-acme") == std::string::npos);
}

TEST_CASE("a topology change alone brings the whole topology") {
  Fixture f;
  const Cursor before = f.changes()->end;
  f.writer->exec(
      "UPDATE shard_topology SET primary_address = '10.9.9.9:1' WHERE shard_id = 'beta'");
  auto batch = f.changes(before);
  CHECK(batch->rows.empty());
  REQUIRE(batch->topology.has_value());
  CHECK((*batch->topology)[1].primary == "10.9.9.9:1");
  f.writer->exec("DELETE FROM shard_topology WHERE shard_id = 'gamma'");
  batch = f.changes(batch->end);
  REQUIRE(batch->topology.has_value());
  CHECK(batch->topology->size() == 2);
}

TEST_CASE("what is not committed is not read, and what was rolled back never was") {
  Fixture f;
  const Cursor before = f.changes()->end;
  f.writer->exec("BEGIN IMMEDIATE");
  put_tenant(*f.writer, "acme", "alpha");
  CHECK_FALSE(f.changed());
  CHECK(text_of(*f.changes(before)) == "");
  f.writer->exec("ROLLBACK");
  CHECK_FALSE(f.changed());
  f.writer->exec("BEGIN IMMEDIATE");
  put_tenant(*f.writer, "acme", "alpha");
  f.writer->exec("COMMIT");
  CHECK(f.changed());
  CHECK(text_of(*f.changes(before)) == "acme=alpha/ACTIVE/ ");
}

TEST_CASE("every commit is noticed once, also where size and times of the files do not show it") {
  Fixture f;
  Cursor cursor = f.changes()->end;
  const std::string wal = f.path + "-wal";
  const auto freeze = [&, now = std::filesystem::last_write_time(f.path)] {
    for (const std::string& file : {f.path, wal}) std::filesystem::last_write_time(file, now);
  };
  for (int i = 0; i < 30; ++i) {
    CAPTURE(i);
    CHECK_FALSE(f.changed());
    put_tenant(*f.writer, "tenant-" + std::to_string(i), "alpha");
    // A reader that has read everything lets the log begin again at its start, at the same size.
    if (i % 3 == 0) f.writer->exec("PRAGMA wal_checkpoint(TRUNCATE)");
    if (i % 3 == 1) f.writer->exec("PRAGMA wal_checkpoint(RESTART)");
    freeze();
    CHECK(f.changed());
    CHECK(f.changed());  // until it was read
    const auto batch = f.changes(cursor);
    CHECK(batch->rows.size() == 1);
    cursor = batch->end;
    CHECK_FALSE(f.changed());
  }
}

TEST_CASE("a checkpoint brings no row twice, and no endless wakes") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  const Cursor cursor = f.changes()->end;
  f.writer->exec("PRAGMA wal_checkpoint(TRUNCATE)");
  CHECK(f.changes(cursor)->rows.empty());
  CHECK_FALSE(f.changed());
}

TEST_CASE("a file renamed over the directory is noticed: an older copy of it is another history") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  const std::string copy = f.folder.file("copy.db");
  f.writer->exec("VACUUM INTO '" + copy + "'");
  // VACUUM INTO gives a file that is not in WAL mode: a restore may well be one.
  put_tenant(*f.writer, "lost", "alpha");
  const Cursor cursor = f.changes()->end;
  {
    SqliteDb restored(copy, SqliteDb::Mode::read_write);
    put_tenant(restored, "other", "beta");
  }
  CHECK_FALSE(f.changed());
  f.writer.reset();
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(f.path + suffix);
  std::filesystem::rename(copy, f.path);
  CHECK(f.changed());
  const auto batch = f.changes(cursor);
  CHECK(batch->kind == Batch::Kind::other_history);
  CHECK(batch->end.version == cursor.version);
  CHECK(batch->end.nonce != cursor.nonce);
  CHECK(batch->rows.empty());
  CHECK(f.changed());  // still: the reload is to come
  auto full = f.source->read_all();
  REQUIRE(full.ok());
  std::string ids;
  for (EntryRow row; *(*full)->next(row);) ids += std::string(row.id) + " ";
  CHECK(ids == "acme other ");
  CHECK(text_of(*f.changes((*full)->end())) == "");
}

TEST_CASE("an older file has not yet reached the cursor's version") {
  Fixture f;
  const std::string copy = f.folder.file("copy.db");
  f.writer->exec("VACUUM INTO '" + copy + "'");
  put_tenant(*f.writer, "acme", "alpha");
  const Cursor cursor = f.changes()->end;
  f.writer.reset();
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(f.path + suffix);
  std::filesystem::rename(copy, f.path);
  CHECK(f.changes(cursor)->kind == Batch::Kind::other_history);
}

TEST_CASE("a log that was taken away with a copied-over file does not blind the source") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  (void)f.changes();
  const std::string copy = f.folder.file("copy.db");
  f.writer->exec("VACUUM INTO '" + copy + "'");
  put_tenant(*f.writer, "lost", "alpha");
  const Cursor cursor = f.changes()->end;
  f.writer.reset();
  // As people restore: cp over the file, rm of the rest. The inode stays.
  {
    std::ifstream from(copy, std::ios::binary);
    std::ofstream to(f.path, std::ios::binary | std::ios::trunc);
    to << from.rdbuf();
  }
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(f.path + suffix);
  CHECK(f.changed());
  CHECK(f.changes(cursor)->kind == Batch::Kind::other_history);
}

TEST_CASE("a cursor below the floor reloads; the floor is looked at before the nonce") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  const Cursor old = f.changes()->end;
  put_tenant(*f.writer, "beta", "alpha");
  f.writer->exec(fmt::format("UPDATE directory_layout SET replay_floor = {}", old.version + 1));
  CHECK(f.changes(old)->kind == Batch::Kind::below_floor);
  CHECK(f.changes({old.version, old.nonce + 1})->kind == Batch::Kind::below_floor);
  CHECK(f.changes({old.version + 1, 1})->kind == Batch::Kind::other_history);
}

TEST_CASE("a full read keeps its version while others write and sync") {
  Fixture f;
  for (int i = 0; i < 500; ++i) put_tenant(*f.writer, fmt::format("old-{}", i), "alpha");
  auto full = f.source->read_all();
  REQUIRE(full.ok());
  CHECK((*full)->row_count() == 500);
  CHECK((*full)->topology().size() == 3);
  CHECK(to_string((*full)->layout().directory_id) == kSampleDirectoryId);
  const Cursor end = (*full)->end();
  std::size_t rows = 0;
  for (EntryRow row; *(*full)->next(row); ++rows) {
    if (rows == 100) {
      f.writer->exec("UPDATE shard_directory SET shard_id = 'beta'");
      put_tenant(*f.writer, "new", "alpha");
      CHECK(f.changes(end)->rows.size() == 501);
    }
    CHECK(row.shard == "alpha");
    CHECK(row.id.starts_with("old-"));
  }
  CHECK(rows == 500);
  EntryRow row;
  CHECK_FALSE(*(*full)->next(row));
  CHECK(f.changes(end)->rows.size() == 501);
}

TEST_CASE("concurrent writers: after every sync the copy equals the table at its version") {
  Fixture f;
  std::map<std::string, std::string> copy;
  std::map<std::string, std::uint64_t> epochs;
  Cursor cursor = f.changes()->end;
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      SqliteDb db(f.path, SqliteDb::Mode::read_write);
      for (int i = 0; i < 60; ++i) {
        SqliteTransaction transaction(db, SqliteTransaction::Kind::write);
        for (int n = 0; n < 3; ++n) {
          db.prepare("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
              .bind(fmt::format("t{}", (w + i * n) % 17), n % 2 == 0 ? "alpha" : "beta")
              .run();
        }
        if (i % 5 == 4) continue;  // rolled back
        transaction.commit();
      }
    });
  }
  const auto sync = [&] {
    const auto batch = f.changes(cursor);
    for (const EntryRow& row : batch->rows) {
      CHECK(row.epoch > cursor.version);
      CHECK(row.epoch > epochs[std::string(row.id)]);
      epochs[std::string(row.id)] = row.epoch;
      copy[std::string(row.id)] = std::string(row.shard);
    }
    cursor = batch->end;
  };
  for (int i = 0; i < 200; ++i) sync();
  for (std::thread& writer : writers) writer.join();
  sync();
  std::map<std::string, std::string> table;
  SqliteStatement row = f.writer->prepare("SELECT entry_id, shard_id FROM shard_directory");
  while (row.step()) table[std::string(row.text(0))] = std::string(row.text(1));
  CHECK(copy == table);
  CHECK(copy.size() == 17);
}

TEST_CASE("a directory that is gone is absent, and is read again when it is back") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  const Cursor cursor = f.changes()->end;
  f.writer.reset();
  const std::string away = f.folder.file("away.db");
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::rename(f.path + suffix, away + suffix);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(f.source->may_have_changed().status().code() == Code::absent);
    const auto batch = f.source->read_changes(cursor, 0);
    CHECK(batch.status().code() == Code::absent);
    CHECK(batch.status().message().find(f.path) != std::string::npos);
    CHECK(f.source->read_all().status().code() == Code::absent);
    CHECK(f.source->read_layout().status().code() == Code::absent);
  }
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::rename(away + suffix, f.path + suffix);
  }
  CHECK(f.changed());
  CHECK(text_of(*f.changes(cursor)) == "");
}

TEST_CASE("a locked directory is unavailable for as long as it is locked, and quickly so") {
  Fixture f;
  const Cursor cursor = f.changes()->end;
  f.source = *open_source(f.path);
  f.writer->exec("PRAGMA locking_mode = EXCLUSIVE");
  put_tenant(*f.writer, "acme", "alpha");
  const auto began = std::chrono::steady_clock::now();
  CHECK(f.source->read_layout().status().code() == Code::unavailable);
  CHECK(f.source->read_changes(cursor, 0).status().code() == Code::unavailable);
  CHECK(std::chrono::steady_clock::now() - began < 1s);
  f.reopen_writer();
  CHECK(text_of(*f.changes(cursor)) == "acme=alpha/ACTIVE/ ");
}

TEST_CASE("a directory without a write-ahead log is read too") {
  Fixture f;
  f.writer->exec("PRAGMA journal_mode = DELETE");
  put_tenant(*f.writer, "acme", "alpha");
  const auto batch = f.changes();
  CHECK(text_of(*batch) == "acme=alpha/ACTIVE/ ");
  CHECK_FALSE(f.changed());
  f.writer->exec("BEGIN EXCLUSIVE");
  CHECK(f.source->may_have_changed().status().code() == Code::unavailable);
  put_tenant(*f.writer, "zeta", "alpha");
  f.writer->exec("COMMIT");
  CHECK(f.changed());
  CHECK(text_of(*f.changes(batch->end)) == "zeta=alpha/ACTIVE/ ");
}

Status refusal_of(const std::string& path) {
  const auto source = open_source(path);
  REQUIRE(source.ok());
  const auto layout = (*source)->read_layout();
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.status().message().find(path) != std::string::npos);
  CHECK_FALSE((*source)->may_have_changed().ok());
  CHECK_FALSE((*source)->read_changes({}, 0).ok());
  CHECK_FALSE((*source)->read_all().ok());
  return layout.status();
}

TEST_CASE("what is no directory of ours is refused by name") {
  Fixture f;
  const std::string other = f.folder.file("other");
  std::ofstream(other) << "not a database, but long enough to be looked at as one: "
                       << std::string(200, '.');
  CHECK(refusal_of(other).message().find("not a database") != std::string::npos);
  CHECK(refusal_of(other).code() == Code::refused);
  std::ofstream(other, std::ios::trunc).flush();
  CHECK(refusal_of(other).message().find("it lacks shard_directory, directory_version") !=
        std::string::npos);
  CHECK(refusal_of(other).code() == Code::refused);
  std::filesystem::remove(other);
  CHECK(refusal_of(other).code() == Code::absent);
  std::filesystem::create_directory(other);
  CHECK_FALSE(refusal_of(other).message().empty());
  CHECK(open_source("postgres://host/db").status().code() == Code::refused);
}

TEST_CASE("a newer schema, a damaged layout, and shards that no segment could hold are refused") {
  Fixture f;
  const auto refusal = [&] { return f.source->read_changes({}, 0).status(); };
  f.writer->exec("DROP TRIGGER shard_topology_inserted");
  f.writer->exec("DROP TRIGGER shard_topology_updated");
  f.writer->exec("UPDATE shard_topology SET replicas = '[1]' WHERE shard_id = 'beta'");
  CHECK(refusal().code() == Code::refused);
  CHECK(refusal().message() ==
        f.path + ": the replicas of shard 'beta': '[1]' is no JSON array of strings");
  f.writer->exec(
      "UPDATE shard_topology SET replicas = '[]', attributes = '[]' WHERE shard_id = 'beta'");
  CHECK(refusal().message().find("no JSON object of strings") != std::string::npos);
  f.writer->exec("UPDATE shard_topology SET attributes = '{}', region = printf('%2000s', 'x')");
  CHECK(refusal().message().find("a field of more than 1024 bytes") != std::string::npos);
  f.writer->exec("UPDATE shard_topology SET region = ''");
  CHECK(f.changes()->topology->size() == 3);
  f.writer->exec("UPDATE directory_layout SET schema_version = 2");
  const auto layout = open_source(f.path).operator*()->read_layout();
  REQUIRE_FALSE(layout.ok());
  CHECK(layout.status().code() == Code::refused);
  CHECK(layout.status().message() == f.path + ": is of schema version 2, this build reads up to 1");
}

TEST_CASE("an account without rights is told which permission is missing on which path") {
  if (::geteuid() != 0) return;
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  REQUIRE(::chmod(f.folder.path().c_str(), 0755) == 0);
  REQUIRE(::chmod(f.path.c_str(), 0644) == 0);
  const auto as_nobody = [&](auto body) {
    return in_child([&]() -> std::string {
      if (::setgroups(0, nullptr) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0)
        return "root";
      const auto source = open_source(f.path);
      return body(**source);
    });
  };
  const auto complaint = [](Source& source) {
    const auto batch = source.read_changes({}, 0);
    return batch ? std::string("read it")
                 : std::string(to_string(batch.status().code())) + ": " + batch.status().message();
  };
  SUBCASE("beside a writer it needs no more than to read") {
    for (const char* suffix : {"-wal", "-shm"})
      REQUIRE(::chmod((f.path + suffix).c_str(), 0644) == 0);
    CHECK(as_nobody(complaint) == "read it");
    REQUIRE(::chmod((f.path + "-wal").c_str(), 0600) == 0);
    CHECK(as_nobody(complaint).find("missing: read permission on " + f.path + "-wal") !=
          std::string::npos);
  }
  SUBCASE("at rest it must be able to make the log") {
    f.writer.reset();
    REQUIRE_FALSE(std::filesystem::exists(f.path + "-wal"));
    const std::string said = as_nobody(complaint);
    CHECK(said.find("not permitted: ") == 0);
    CHECK(said.find("missing: write permission on " + f.folder.path() + ", to make " + f.path +
                    "-wal") != std::string::npos);
    REQUIRE(::chmod(f.folder.path().c_str(), 0777) == 0);
    REQUIRE(::chmod(f.path.c_str(), 0666) == 0);
    CHECK(as_nobody(complaint) == "read it");
  }
  SUBCASE("the file itself, and its folder") {
    REQUIRE(::chmod(f.path.c_str(), 0600) == 0);
    CHECK(as_nobody(complaint).find("missing: read permission on " + f.path) != std::string::npos);
    REQUIRE(::chmod(f.folder.path().c_str(), 0700) == 0);
    CHECK(as_nobody(complaint).find("missing: search permission on " + f.folder.path()) !=
          std::string::npos);
  }
}

// Follows the watch as the syncer does, until a read shows something new or `limit` is over.
bool wakes_to_a_change(Fixture& f, std::chrono::milliseconds limit, int* wakes = nullptr) {
  const auto until = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd ready{f.source->watch_fd(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0) return false;
    f.source->drain_watch();
    if (wakes != nullptr) ++*wakes;
    if (f.changed()) return true;
  }
}

TEST_CASE(
    "a commit by another connection wakes the watch, and one wake comes after it can be read") {
  Fixture f;
  REQUIRE(f.source->watch_fd() >= 0);
  Cursor cursor = f.changes()->end;
  for (int i = 0; i < 30; ++i) {
    CAPTURE(i);
    std::thread writer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(i));
      put_tenant(*f.writer, "tenant-" + std::to_string(i), "alpha");
    });
    CHECK(wakes_to_a_change(f, 5s));
    writer.join();
    cursor = f.changes(cursor)->end;
  }
}

TEST_CASE("the watch falls silent when nothing happens, whatever the source reads") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  (void)f.changes();
  int wakes = 0;
  CHECK_FALSE(wakes_to_a_change(f, 800ms, &wakes));
  wakes = 0;
  std::ofstream(f.folder.file("somebody-elses-file")) << "x";
  for (int i = 0; i < 3; ++i) {
    (void)f.changes();
    (void)f.source->read_all();
    CHECK_FALSE(wakes_to_a_change(f, 100ms, &wakes));
  }
  CHECK(wakes <= 2);
}

TEST_CASE("the watch follows a file that is renamed over the directory") {
  Fixture f;
  put_tenant(*f.writer, "acme", "alpha");
  const Cursor cursor = f.changes()->end;
  const std::string copy = f.folder.file("copy.db");
  make_sample_directory(copy);
  CHECK_FALSE(wakes_to_a_change(f, 600ms));
  f.writer.reset();
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(f.path + suffix);
  std::filesystem::rename(copy, f.path);
  CHECK(wakes_to_a_change(f, 5s));
  CHECK(f.changes(cursor)->kind == Batch::Kind::other_history);
  const Cursor end = f.changes()->end;
  CHECK_FALSE(wakes_to_a_change(f, 600ms));
  f.reopen_writer();
  put_tenant(*f.writer, "zeta", "alpha");
  CHECK(wakes_to_a_change(f, 5s));
  CHECK(text_of(*f.changes(end)) == "zeta=alpha/ACTIVE/ ");
}

}  // namespace
}  // namespace fingerpost
