// Which shard a new tenant goes to: the one with the least load for its weight. Values only, no
// directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fingerpost {

struct ShardLoad {
  std::string shard;
  std::string region;
  std::uint32_t weight = 0;        // 0: takes no new tenants
  std::uint64_t tenants = 0;       // that are not DELETED
  std::optional<double> reported;  // in tenants' worth: 1.0 is an average tenant
};

// max(tenants, reported) / weight. The weight must not be 0.
double score_of(const ShardLoad& load);

// The index of the shard with the least score among those of `region` (empty: of any) that take new
// tenants. Of equals a hash of the id chooses, so that many creators at once do not all choose the
// same, and the same id always does. nullopt if there is none. `loads` is sorted by name.
std::optional<std::size_t> place(const std::vector<ShardLoad>& loads, std::string_view region,
                                 std::string_view id);

}  // namespace fingerpost
