// `fingerpost tenant split` and `tenant merge`: into how many parts a tenant's objects are divided.
// Neither moves data: a part begins on the shard where its objects are, and is moved from there by
// itself; parts merge only where they are on one shard already. So no object changes its shard
// here, and each gets a newer epoch with the part that answers for it from then on.
//
// The rows of the parts are made and removed by the triggers on directory_split.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shm/status.h"
#include "tools/directory.h"
#include "tools/directory_entry.h"

namespace fingerpost {

// Divides a tenant into `parts`, or a split one into a multiple of the parts it has. A tenant that
// its bucket or the hash rule answers for gets an entry of its own, on the shard that it resolved
// to. Done already where it has so many. Conflict, with what is legal, for any other number, a
// DELETED tenant, and while the tenant, a part, or the bucket that answers is being moved. Absent
// if nothing answers for it. The version.
Result<std::uint64_t> split_tenant(Directory& directory, std::string_view id, std::uint32_t parts);

// Merges into `parts`, a divisor of those there are; 1: the tenant's own entry answers again, and
// the version is also given where that is so already. Conflict, with what is legal, where parts
// that would become one are on different shards, and as above.
Result<std::uint64_t> merge_tenant(Directory& directory, std::string_view id, std::uint32_t parts);

// In the order of their numbers; empty unless the tenant is split. As an entry's, their ids are
// "part:K:TENANT".
std::vector<TenantRow> list_parts(Directory& directory, std::string_view tenant);

// For the inside of a change: a DELETED tenant's parts go, wherever they are.
void drop_split(Directory& directory, std::string_view id);

}  // namespace fingerpost
