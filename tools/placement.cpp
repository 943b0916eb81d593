#include "tools/placement.h"

#include <algorithm>

#include "shm/hash.h"

namespace fingerpost {

double score_of(const ShardLoad& load) {
  return std::max(static_cast<double>(load.tenants), load.reported.value_or(0)) / load.weight;
}

std::optional<std::size_t> place(const std::vector<ShardLoad>& loads, std::string_view region,
                                 std::string_view id) {
  std::vector<std::size_t> least;
  double score = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const ShardLoad& load = loads[i];
    if (load.weight == 0 || (!region.empty() && load.region != region)) continue;
    const double own = score_of(load);
    if (least.empty() || own < score) {
      least.clear();
      score = own;
    }
    if (own == score) least.push_back(i);
  }
  if (least.empty()) return std::nullopt;
  return least[placement_hash(id) % least.size()];
}

}  // namespace fingerpost
