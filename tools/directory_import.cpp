#include "tools/directory_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "shm/tenant_id.h"
#include "tools/directory_entry.h"
#include "tools/directory_shards.h"
#include "tools/import_besides.h"
#include "tools/import_reader.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::int64_t kInsertRows = 10'000;  // between two reports of progress

struct Row {
  std::string_view id;
  std::string_view shard;
  std::string_view state;  // empty: left open
  std::string_view target;
};

// What is wrong with a row by itself.
std::optional<std::string> why_not_row(const Row& row, const DirectoryLayout& layout) {
  if (const auto why = why_not_entry_id(row.id))
    return fmt::format("entry_id {} {}", in_quotes(row.id), *why);
  const auto bucket = bucket_of_entry_id(row.id);
  if (bucket && *bucket >= layout.buckets) {
    return fmt::format("entry_id {}: the directory has {} buckets", in_quotes(row.id),
                       layout.buckets);
  }
  if (const auto why = why_not_shard_name(row.shard))
    return fmt::format("shard_id {} {}", in_quotes(row.shard), *why);
  constexpr std::array<std::string_view, 5> kStates = {"", "ACTIVE", "MIGRATING", "FROZEN",
                                                       "DELETED"};
  if (std::find(kStates.begin(), kStates.end(), row.state) == kStates.end()) {
    return fmt::format("state {} is none of ACTIVE, MIGRATING, FROZEN, DELETED",
                       in_quotes(row.state));
  }
  if (bucket && row.state == "DELETED")
    return fmt::format("entry_id {}: a bucket cannot be DELETED", in_quotes(row.id));
  if (row.state == "DELETED" && part_of_entry_id(row.id))
    return fmt::format("entry_id {}: a part cannot be DELETED", in_quotes(row.id));
  const bool may_move = row.state == "MIGRATING" || row.state == "FROZEN";
  if (!row.target.empty() && !may_move) {
    return fmt::format("target_shard {} goes with state MIGRATING or FROZEN only",
                       in_quotes(row.target));
  }
  if (row.target.empty() && row.state == "MIGRATING")
    return std::string("state MIGRATING needs a target_shard");
  return std::nullopt;
}

class Import {
 public:
  Import(Directory& directory, const ImportOptions& options)
      : directory_(directory), options_(options) {}

  Result<ImportReport> run(CsvReader::Read read) {
    // Ids come in any order: with the 2 MiB that a connection has, a million of them rewrite the
    // pages of both trees over and over.
    db().exec("PRAGMA temp.cache_size = -262144; PRAGMA main.cache_size = -262144");
    db().exec("DROP TABLE IF EXISTS temp.staged");
    db().exec(
        "CREATE TEMP TABLE staged (entry_id TEXT NOT NULL PRIMARY KEY, shard_id TEXT NOT NULL, "
        "state TEXT, target_shard TEXT, bucket TEXT, tenant TEXT, part INTEGER, line INTEGER NOT "
        "NULL) STRICT, WITHOUT ROWID;"
        "CREATE INDEX temp.staged_part ON staged (tenant) WHERE tenant IS NOT NULL");
    besides_.emplace(directory_, faults_);
    if (Status status = stage(std::move(read)); !status.ok()) return status;
    if (options_.dry_run || !faults_.empty()) {
      const SqliteTransaction look(db(), SqliteTransaction::Kind::read);
      compare();
      report_.version = directory_.version();
    } else {
      DirectoryChange change(directory_, "import");
      compare();
      if (faults_.empty()) {
        report_.shards = besides_->insert_shards();
        insert();
        report_.splits = besides_->insert_splits();
        report_.pins = besides_->insert_pins();
        report_.version = change.commit();
      }
    }
    besides_.reset();
    db().exec("DROP TABLE temp.staged");
    report_.fault_count = faults_.count();
    report_.faults = faults_.take();
    return std::move(report_);
  }

 private:
  SqliteDb& db() { return directory_.db(); }

  Status stage(CsvReader::Read read) {
    ImportReader reader(std::move(read));
    if (Status status = reader.begin(); !status.ok()) return status;
    // Of the temporary database only: the directory is not locked by it.
    SqliteTransaction transaction(db(), SqliteTransaction::Kind::read);
    SqliteStatement insert = db().prepare(
        "INSERT INTO temp.staged (entry_id, shard_id, state, target_shard, bucket, tenant, part, "
        "line) VALUES (?, ?, nullif(?, ''), nullif(?, ''), nullif(?, ''), nullif(?, ''), ?, ?) "
        "ON CONFLICT DO NOTHING");
    ImportRecord record;
    Result<bool> more = reader.next(record);
    for (; more.ok() && *more; more = reader.next(record)) {
      ++report_.rows;
      stage_record(record, reader.line(), insert);
    }
    if (!more) {
      // Bad structure is a fault of its line; input that cannot be read is none.
      if (more.status().code() != Code::refused) return more.status();
      faults_.add(reader.line(), more.status().message());
    }
    transaction.commit();
    return {};
  }

  void stage_record(const ImportRecord& record, std::uint64_t line, SqliteStatement& insert) {
    if (!record.fault.empty()) return faults_.add(line, record.fault);
    if (record.kind != "entry") return besides_->stage(record, line);
    if (!record.details.empty()) {
      return faults_.add(line,
                         "an entry has no " + in_quotes(record.details.items().begin().key()));
    }
    const Row row{record.id, record.shard, record.state, record.target};
    if (auto why = why_not_row(row, directory_.layout())) {
      return faults_.add(line, *std::move(why));
    }
    const auto part = part_of_entry_id(row.id);
    const std::string bucket =
        part || bucket_of_entry_id(row.id) ? std::string() : directory_.bucket_of(row.id);
    insert.bind(row.id, row.shard, row.state, row.target, bucket,
                part ? part->tenant : std::string_view(), part ? part->part : 0, line);
    insert.run();
    if (db().changes() == 0) compare_with_staged(row, line);
  }

  void compare_with_staged(const Row& row, std::uint64_t line) {
    SqliteStatement earlier = db().prepare(
        "SELECT line, shard_id, coalesce(state, ''), coalesce(target_shard, '') FROM temp.staged "
        "WHERE entry_id = ?");
    earlier.bind(row.id).step();
    const bool same = earlier.text(1) == row.shard && earlier.text(2) == row.state &&
                      earlier.text(3) == row.target;
    if (same) {
      ++report_.repeated;
      return;
    }
    faults_.add(line, fmt::format("entry_id {} is on line {} already, with {} there and {} here",
                                  in_quotes(row.id), earlier.integer(0),
                                  described(earlier.text(1), earlier.text(2), earlier.text(3)),
                                  described(row.shard, row.state, row.target)));
  }

  // The staged rows against the directory, as it is in this transaction.
  void compare() {
    besides_->compare();
    compare_shards("shard_id");
    compare_shards("target_shard");
    compare_entries();
    compare_moving_buckets();
    report_.unchanged = static_cast<std::uint64_t>(db().integer(
        "SELECT count(*) FROM temp.staged AS s JOIN main.shard_directory USING (entry_id)"));
    report_.inserted =
        static_cast<std::uint64_t>(db().integer("SELECT count(*) FROM temp.staged")) -
        report_.unchanged;
  }

  void compare_shards(std::string_view column) {
    SqliteStatement select =
        db().prepare(fmt::format("SELECT line, {0} FROM temp.staged WHERE {0} NOT IN (SELECT "
                                 "shard_id FROM temp.known_shard)",
                                 column));
    while (select.step()) {
      faults_.add(select.number(0),
                  fmt::format("{} {}: there is no such shard", column, in_quotes(select.text(1))));
    }
  }

  void compare_entries() {
    SqliteStatement select = db().prepare(
        "SELECT s.line, s.entry_id, d.shard_id, d.state, d.target_shard, s.shard_id, s.state, "
        "s.target_shard "
        "FROM temp.staged AS s JOIN main.shard_directory AS d USING (entry_id) "
        "WHERE s.shard_id <> d.shard_id OR CASE WHEN s.state IS NULL THEN d.state = 'DELETED' "
        "ELSE s.state <> d.state OR s.target_shard IS NOT d.target_shard END");
    while (select.step()) {
      faults_.add(select.number(0),
                  fmt::format("entry_id {} exists with {}; an import does not change it to {}",
                              in_quotes(select.text(1)),
                              described(select.text(2), select.text(3), select.text(4)),
                              described(select.text(5), select.text(6), select.text(7))));
    }
  }

  void compare_moving_buckets() {
    SqliteStatement select = db().prepare(
        "SELECT s.line, s.entry_id FROM main.shard_directory AS b "
        "JOIN temp.staged AS s ON s.bucket = b.entry_id "
        "WHERE b.entry_id >= 'bucket:' AND b.entry_id < 'bucket;' AND (b.state <> 'ACTIVE' "
        "OR EXISTS (SELECT 1 FROM main.directory_move AS m WHERE m.entry_id = b.entry_id)) "
        "AND NOT EXISTS (SELECT 1 FROM main.shard_directory AS d WHERE d.entry_id = s.entry_id)");
    while (select.step()) {
      faults_.add(select.number(0), check_at_rest(directory_, select.text(1)).message());
    }
  }

  // All but parts, which the split of their tenant makes. In slices by id, for progress' sake,
  // inside the one transaction.
  void insert() {
    SqliteStatement slice_end = db().prepare(
        "SELECT entry_id FROM temp.staged WHERE entry_id > ? ORDER BY entry_id LIMIT 1 OFFSET ?");
    SqliteStatement insert_slice = db().prepare(
        "INSERT INTO main.shard_directory (entry_id, shard_id, state, target_shard) "
        "SELECT entry_id, shard_id, coalesce(state, 'ACTIVE'), target_shard FROM temp.staged AS s "
        "WHERE entry_id > ?1 AND (?2 IS NULL OR entry_id <= ?2) AND s.tenant IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM main.shard_directory AS d WHERE d.entry_id = s.entry_id) "
        "ORDER BY entry_id");
    std::uint64_t done = 0;
    for (std::string from;;) {
      const bool last = !slice_end.bind(from, kInsertRows - 1).step();
      const std::string to = last ? std::string() : std::string(slice_end.text(0));
      insert_slice.bind(from, to);
      if (last) insert_slice.bind_at(2, nullptr);
      insert_slice.run();
      done += static_cast<std::uint64_t>(db().changes());
      if (options_.on_insert) options_.on_insert(done, report_.inserted);
      if (last) return;
      from = to;
    }
  }

  static std::string described(std::string_view shard, std::string_view state,
                               std::string_view target) {
    std::string text = "shard " + in_quotes(shard);
    if (!state.empty()) text += fmt::format(", state {}", state);
    if (!target.empty()) text += ", target " + in_quotes(target);
    return text;
  }

  Directory& directory_;
  const ImportOptions& options_;
  ImportFaults faults_;
  std::optional<ImportBesides> besides_;
  ImportReport report_;
};

}  // namespace

Result<ImportReport> import_directory(Directory& directory, CsvReader::Read read,
                                      const ImportOptions& options) {
  return Import(directory, options).run(std::move(read));
}

}  // namespace fingerpost
