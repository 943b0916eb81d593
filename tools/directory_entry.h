// One entry as the directory has it, its open move, and the question whether it is at rest. What
// the verbs that change single entries share.
//
// Throws SqliteError. What a verb decides by these it must ask inside its own DirectoryChange.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

struct TenantRow {
  std::string id;
  std::string shard;
  std::string state;
  std::string target;  // empty: none
  std::uint64_t epoch = 0;
  std::string updated_at;
  std::uint32_t parts = 0;  // of a split tenant; else 0
};

// For "SELECT <these> FROM shard_directory …", and the row that such a SELECT is at.
inline constexpr std::string_view kEntryColumns =
    "entry_id, shard_id, state, target_shard, epoch, updated_at, "
    "(SELECT parts FROM directory_split AS s WHERE s.entry_id = shard_directory.entry_id)";
TenantRow tenant_row_of(const SqliteStatement& select);

// "part:3:acme".
std::string part_entry_id(std::uint32_t part, std::string_view tenant);

// The entry of a tenant, a bucket or a part.
std::optional<TenantRow> find_entry(Directory& directory, std::string_view id);

// The shard that answers for an id without an entry of its own; empty if none does. Of a bucket
// always empty.
std::string fallback_shard(Directory& directory, std::string_view id);

// An open move. Times are the database's, in UTC; ages are by its clock, at this read.
struct MoveRow {
  std::string entry;
  std::string source;
  std::string target;
  std::string step;  // "marked" or "frozen"
  std::string token;
  std::string owner;
  std::string started_at;
  std::string frozen_at;  // empty unless frozen
  std::string deadline;
  std::uint64_t epoch = 0;   // of the entry, after the last step
  std::int64_t age_ms = 0;   // since the mark
  std::int64_t left_ms = 0;  // until the deadline; negative: overdue by so much
  bool overdue() const noexcept { return left_ms < 0; }
};

inline constexpr std::string_view kMoveColumns =
    "entry_id, source, target, step, token, owner, started_at, frozen_at, deadline, epoch, "
    "CAST(round((julianday('now') - julianday(started_at)) * 86400000) AS INTEGER), "
    "CAST(round((julianday(deadline) - julianday('now')) * 86400000) AS INTEGER)";
MoveRow move_row_of(const SqliteStatement& select);

std::optional<MoveRow> find_move(Directory& directory, std::string_view entry);

// "its move to shard 's2' is marked (owner mia@h1, since 12 s, deadline in 14 m)".
std::string described(const MoveRow& move);

// A conflict that names the open move, if what `id` resolves by (its own entry, a part of it, or
// the bucket that answers for it) is being moved: nothing that changes which rule an id resolves by
// goes on meanwhile. A state set by other means than our verbs counts as a move.
Status check_at_rest(Directory& directory, std::string_view id);

// The same for the bucket that answers, or would answer, for a tenant that has an entry of its own.
Status check_bucket_at_rest(Directory& directory, std::string_view tenant);

// "12 s", "3 m 20 s", "2 h 5 m", "4 d 1 h".
std::string spoken_duration(std::int64_t milliseconds);

}  // namespace fingerpost
