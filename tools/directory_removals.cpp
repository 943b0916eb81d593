#include "tools/directory_removals.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "shm/tenant_id.h"
#include "tools/directory_entry.h"
#include "tools/directory_pins.h"
#include "tools/directory_splits.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::int64_t kPurgeRows = 2'000;  // a transaction; a tenth of a second of write lock

Status check_id(std::string_view id) {
  if (const auto why = why_not_tenant_id(id)) {
    return {Code::refused, "tenant id " + in_quotes(id) + " " + std::string(*why)};
  }
  return {};
}

// As a modifier of SQLite's date functions.
std::string ago(std::chrono::milliseconds time) {
  return fmt::format("-{}.{:03} seconds", time.count() / 1'000, time.count() % 1'000);
}

bool was_removed(Directory& directory, std::string_view id) {
  SqliteStatement select =
      directory.db().prepare("SELECT 1 FROM directory_removed WHERE entry_id = ?");
  return select.bind(id).step();
}

void remove_entry(Directory& directory, std::string_view id) {
  drop_split(directory, id);
  drop_pin(directory, id);
  directory.db()
      .prepare("INSERT INTO directory_removed (entry_id, uncovers) VALUES (?, nullif(?, ''))")
      .bind(id, directory.bucket_of(id))
      .run();
  directory.db().prepare("DELETE FROM shard_directory WHERE entry_id = ?").bind(id).run();
}

// The answer for an id without an entry.
Result<std::uint64_t> removed_before(Directory& directory, std::string_view id) {
  if (was_removed(directory, id)) return directory.version();
  const std::string bucket = directory.bucket_of(id);
  return Status(Code::absent,
                "tenant " + in_quotes(id) + " has no entry" +
                    (bucket.empty() ? "" : " of its own; " + bucket + " answers for it"));
}

Status check_forgettable(Directory& directory, const TenantRow& row) {
  if (Status status = check_at_rest(directory, row.id); !status.ok()) return status;
  if (row.state == "DELETED") {
    return {Code::refused, fmt::format("tenant {} is DELETED: tenant purge removes it after a "
                                       "retention",
                                       in_quotes(row.id))};
  }
  if (row.parts != 0) {
    return {Code::refused, fmt::format("tenant {} is split into {} parts: tenant merge first",
                                       in_quotes(row.id), row.parts)};
  }
  if (find_pin(directory, row.id)) {
    return {Code::refused, fmt::format("tenant {} is pinned: without an entry of its own it would "
                                       "go where its bucket goes; tenant unpin first",
                                       in_quotes(row.id))};
  }
  const std::string fallback = fallback_shard(directory, row.id);
  if (fallback.empty()) {
    return {Code::refused,
            fmt::format("nothing but its entry answers for tenant {}", in_quotes(row.id))};
  }
  if (fallback != row.shard) {
    return {Code::conflict,
            fmt::format("tenant {} is on shard {}, and would resolve to {} without its entry: "
                        "only a move changes that",
                        in_quotes(row.id), in_quotes(row.shard), in_quotes(fallback))};
  }
  return check_bucket_at_rest(directory, row.id);
}

Status check_purgeable(Directory& directory, const TenantRow& row,
                       std::chrono::milliseconds retention) {
  if (row.state != "DELETED") {
    return {Code::refused,
            fmt::format("tenant {} is {} on shard {}: only what is DELETED is purged",
                        in_quotes(row.id), row.state, in_quotes(row.shard))};
  }
  if (Status status = check_at_rest(directory, row.id); !status.ok()) return status;
  SqliteStatement due = directory.db().prepare(
      "SELECT julianday(updated_at) > julianday('now', ?2) FROM shard_directory WHERE entry_id = "
      "?1");
  if (due.bind(row.id, ago(retention)).step() && due.integer(0) != 0) {
    return {Code::refused,
            fmt::format("tenant {} is DELETED since {}: the retention is {}", in_quotes(row.id),
                        row.updated_at, spoken_duration(retention.count()))};
  }
  return check_bucket_at_rest(directory, row.id);
}

// The next DELETED tenants after `after` whose retention has passed.
std::vector<std::string> due_after(Directory& directory, const std::string& after,
                                   std::chrono::milliseconds retention) {
  SqliteStatement select = directory.db().prepare(
      "SELECT entry_id FROM shard_directory WHERE entry_id > ?1 AND state = 'DELETED' "
      "AND NOT (entry_id >= 'part:' AND entry_id < 'part;') "
      "AND julianday(updated_at) <= julianday('now', ?2) ORDER BY entry_id LIMIT ?3");
  select.bind(after, ago(retention), kPurgeRows);
  std::vector<std::string> ids;
  while (select.step()) ids.emplace_back(select.text(0));
  return ids;
}

}  // namespace

Result<std::uint64_t> forget_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  DirectoryChange change(directory, "tenant forget");
  const auto row = find_entry(directory, id);
  if (!row) return removed_before(directory, id);
  if (Status status = check_forgettable(directory, *row); !status.ok()) return status;
  remove_entry(directory, id);
  drop_old_removals(directory, kRemovalsKept);
  return change.commit();
}

Result<std::uint64_t> purge_tenant(Directory& directory, std::string_view id,
                                   std::chrono::milliseconds retention) {
  if (Status status = check_id(id); !status.ok()) return status;
  DirectoryChange change(directory, "tenant purge");
  const auto row = find_entry(directory, id);
  if (!row) return removed_before(directory, id);
  if (Status status = check_purgeable(directory, *row, retention); !status.ok()) return status;
  remove_entry(directory, id);
  drop_old_removals(directory, kRemovalsKept);
  return change.commit();
}

PurgeReport purge_all(Directory& directory, std::chrono::milliseconds retention) {
  PurgeReport report;
  for (std::string after;;) {
    DirectoryChange change(directory, "tenant purge");
    const std::vector<std::string> ids = due_after(directory, after, retention);
    for (const std::string& id : ids) {
      if (check_at_rest(directory, id).ok() && check_bucket_at_rest(directory, id).ok()) {
        remove_entry(directory, id);
        ++report.purged;
      } else {
        ++report.held;
      }
    }
    drop_old_removals(directory, kRemovalsKept);
    report.version = change.commit();
    if (ids.empty()) return report;
    after = ids.back();
  }
}

std::uint64_t drop_old_removals(Directory& directory, std::chrono::milliseconds kept) {
  directory.db()
      .prepare(
          "DELETE FROM directory_removed WHERE version > 0 AND version <= (SELECT "
          "coalesce(max(r.version), 0) FROM directory_removed AS r JOIN directory_history AS h "
          "ON h.version = r.version WHERE julianday(h.at) <= julianday('now', ?))")
      .bind(ago(kept))
      .run();
  return static_cast<std::uint64_t>(directory.db().changes());
}

}  // namespace fingerpost
