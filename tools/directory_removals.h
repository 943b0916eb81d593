// The two ways in which a row leaves the table: `tenant forget`, of an override that says what its
// fallback says anyway, and `tenant purge`, of a tenant that has been DELETED for long enough. Both
// list the id in directory_removed in the same transaction, for syncers that still hold it.
//
// Throws SqliteError.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

// How long the list of removed ids goes back: a host that was away for longer reloads.
inline constexpr std::chrono::milliseconds kRemovalsKept = std::chrono::hours(24 * 30);

// The entry must be ACTIVE, at rest, and on the shard that its bucket or the hash rule names; the
// bucket must be at rest. Done already where the id was removed before and has no entry. Absent if
// it never had one. The version.
Result<std::uint64_t> forget_tenant(Directory& directory, std::string_view id);

// The entry must have been DELETED for `retention`, and its bucket be at rest. Its pin and its
// parts go with it. The id is unknown from then on, or resolves by its bucket or the hash rule.
// Done already, and absent, as above.
Result<std::uint64_t> purge_tenant(Directory& directory, std::string_view id,
                                   std::chrono::milliseconds retention);

struct PurgeReport {
  std::uint64_t purged = 0;
  std::uint64_t held = 0;  // left there, since the bucket that would answer is being moved
  std::uint64_t version = 0;
};

// Every tenant that purge_tenant would purge, some thousand in a transaction.
PurgeReport purge_all(Directory& directory, std::chrono::milliseconds retention);

// Drops what directory_removed lists longer than `kept`, which raises replay_floor: a cursor below
// it reloads. How many rows that were. For the inside of a change; forget and purge do it with
// kRemovalsKept.
std::uint64_t drop_old_removals(Directory& directory, std::chrono::milliseconds kept);

}  // namespace fingerpost
