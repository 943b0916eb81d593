#include "tools/directory_entry.h"

#include <fmt/format.h>

#include "shm/hash.h"
#include "shm/tenant_id.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

// The conflict of an entry that is being moved; ok if it is at rest or not there. `role` says what
// the entry is to the id that was asked for.
Status entry_at_rest(Directory& directory, std::string_view entry, const std::string& role) {
  const auto row = find_entry(directory, entry);
  if (!row) return {};
  const auto move = find_move(directory, entry);
  if (!move && (row->state == "ACTIVE" || row->state == "DELETED")) return {};
  return {Code::conflict,
          fmt::format("{}is {} on shard {} (epoch {}); {}: finish or abort it first", role,
                      row->state, in_quotes(row->shard), row->epoch,
                      move ? described(*move) : "no verb of ours recorded its move")};
}

Status parts_at_rest(Directory& directory, std::string_view tenant) {
  SqliteStatement select = directory.db().prepare(
      "SELECT p.part, p.entry_id FROM directory_part AS p "
      "JOIN shard_directory AS d ON d.entry_id = p.entry_id WHERE p.tenant = ? AND (d.state <> "
      "'ACTIVE' OR EXISTS (SELECT 1 FROM directory_move AS m WHERE m.entry_id = p.entry_id)) "
      "ORDER BY p.part LIMIT 1");
  if (!select.bind(tenant).step()) return {};
  const std::string role = fmt::format("part {} of {} ", select.integer(0), in_quotes(tenant));
  const std::string entry(select.text(1));
  return entry_at_rest(directory, entry, role);
}

}  // namespace

TenantRow tenant_row_of(const SqliteStatement& select) {
  return {std::string(select.text(0)),
          std::string(select.text(1)),
          std::string(select.text(2)),
          std::string(select.text(3)),
          select.number(4),
          std::string(select.text(5)),
          static_cast<std::uint32_t>(select.number(6))};
}

std::string part_entry_id(std::uint32_t part, std::string_view tenant) {
  return fmt::format("{}{}:{}", kPartPrefix, part, tenant);
}

std::optional<TenantRow> find_entry(Directory& directory, std::string_view id) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM shard_directory WHERE entry_id = ?", kEntryColumns));
  if (!select.bind(id).step()) return std::nullopt;
  return tenant_row_of(select);
}

std::string fallback_shard(Directory& directory, std::string_view id) {
  if (why_not_tenant_id(id)) return {};
  const DirectoryLayout& layout = directory.layout();
  switch (layout.fallback) {
    case Fallback::none:
      return {};
    case Fallback::buckets: {
      const auto bucket = find_entry(directory, directory.bucket_of(id));
      return bucket ? bucket->shard : std::string();
    }
    case Fallback::hash:
      return layout.hash_shards[placement_hash(id) % layout.hash_shards.size()];
  }
  return {};
}

MoveRow move_row_of(const SqliteStatement& select) {
  MoveRow move;
  move.entry = select.text(0);
  move.source = select.text(1);
  move.target = select.text(2);
  move.step = select.text(3);
  move.token = select.text(4);
  move.owner = select.text(5);
  move.started_at = select.text(6);
  move.frozen_at = select.text(7);
  move.deadline = select.text(8);
  move.epoch = select.number(9);
  move.age_ms = select.integer(10);
  move.left_ms = select.integer(11);
  return move;
}

std::optional<MoveRow> find_move(Directory& directory, std::string_view entry) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM directory_move WHERE entry_id = ?", kMoveColumns));
  if (!select.bind(entry).step()) return std::nullopt;
  return move_row_of(select);
}

std::string described(const MoveRow& move) {
  const std::string deadline = move.overdue() ? "overdue by " + spoken_duration(-move.left_ms)
                                              : "deadline in " + spoken_duration(move.left_ms);
  return fmt::format("its move from shard {} to {} is {} (owner {}, since {}, {})",
                     in_quotes(move.source), in_quotes(move.target), move.step, move.owner,
                     spoken_duration(move.age_ms), deadline);
}

Status check_at_rest(Directory& directory, std::string_view id) {
  const auto row = find_entry(directory, id);
  if (!row) return check_bucket_at_rest(directory, id);
  if (row->parts != 0) return parts_at_rest(directory, id);
  return entry_at_rest(directory, id, in_quotes(id) + " ");
}

Status check_bucket_at_rest(Directory& directory, std::string_view tenant) {
  const std::string bucket = directory.bucket_of(tenant);
  if (bucket.empty()) return {};
  return entry_at_rest(directory, bucket,
                       fmt::format("{} answers for {}, and ", bucket, in_quotes(tenant)));
}

std::string spoken_duration(std::int64_t milliseconds) {
  const std::int64_t seconds = milliseconds / 1'000;
  if (milliseconds < 1'000) return fmt::format("{} ms", milliseconds);
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3'600) return fmt::format("{} m {} s", seconds / 60, seconds % 60);
  if (seconds < 86'400) return fmt::format("{} h {} m", seconds / 3'600, seconds / 60 % 60);
  return fmt::format("{} d {} h", seconds / 86'400, seconds / 3'600 % 24);
}

}  // namespace fingerpost
