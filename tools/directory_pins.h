// `fingerpost tenant pin` and `tenant unpin`: tenants that nothing moves by itself, and the region
// that they must not leave. A pinned tenant has an entry of its own, so that no bucket's move takes
// it along; where nothing but entries answers, the pin may come before the tenant.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

struct Pin {
  std::string region;  // empty: any
  std::string reason;
  std::string who;
  std::string at;  // the database's time, UTC
};

// Pins, or changes the pin: what is given here is all that it says. A tenant that its bucket or the
// hash rule answers for gets an entry of its own, on the shard that it resolved to. Conflict where
// it, or a part of it, is in another region or on the way to one, and while what it resolves by is
// being moved; refused where no shard is of that region. Absent if only a bucket without a shard
// answers. The version.
Result<std::uint64_t> pin_tenant(Directory& directory, std::string_view id, std::string_view region,
                                 std::string_view reason);

// Absent if it is not pinned. Its entry stays.
Result<std::uint64_t> unpin_tenant(Directory& directory, std::string_view id);

std::optional<Pin> find_pin(Directory& directory, std::string_view tenant);

// In the order of the ids' bytes. `take` must not use the directory.
void visit_pins(Directory& directory,
                const std::function<void(const std::string& tenant, const Pin&)>& take);

// A conflict if a tenant that is there, or a part of it, is on a shard of another region than
// `region`, or on its way to one.
Status check_is_in(Directory& directory, std::string_view id, std::string_view region);

// A conflict if `entry`, a tenant or a part, is pinned to a region that `shard` is not of.
Status check_region(Directory& directory, std::string_view entry, std::string_view shard);

// For the inside of a change.
void drop_pin(Directory& directory, std::string_view tenant);

}  // namespace fingerpost
