// Why an id resolves as it does: which rule, which row, which version, and what it would be without
// the tenant's own entry. Read from the segment through the reader, as a worker would; the
// directory, where there is one at hand, says what its row is now and who wrote it.
//
// The segment is walked for its fallback word: milliseconds for a million entries.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reader/reader.h"
#include "shm/status.h"
#include "tools/directory.h"
#include "tools/directory_entry.h"
#include "tools/directory_history.h"

namespace fingerpost {

struct Explanation {
  Route route;
  std::string rule;  // "override", "part", "bucket", "hash"; "none": no rule answers
  // Whose row answered: the id, "part:K:ID", "bucket:N" or "hash:N"; of no rule the last asked.
  std::string entry;
  // What answers where the tenant has no entry of its own: "bucket:N" or "hash:N" and its route;
  // empty in a directory without buckets and hash list, no route for a bucket without a shard.
  std::string fallback;
  std::optional<Route> fallback_route;
};

// For one object of the tenant, if there is one: a split tenant answers by its part. Not for what
// is no tenant id. unavailable: the table was replaced under the walk, again and again.
Result<Explanation> explain(const Reader& reader, std::string_view id,
                            const std::optional<std::string>& object);

// The row that the explanation is about, as the directory has it now.
struct DirectorySide {
  std::uint64_t version = 0;
  std::optional<TenantRow> row;
  std::optional<EntryChange> change;  // that made the row what it is
};

DirectorySide directory_side(Directory& directory, const std::string& entry);

}  // namespace fingerpost
