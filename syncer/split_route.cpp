#include "syncer/split_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace fingerpost {

RouteFields EntryParts::part(unsigned k) const {
  return split_.parts() == 0 ? whole_ : split_.part(k);
}

RouteFields EntryParts::for_part(unsigned k, unsigned parts) const {
  const unsigned own = count();
  if (own == 0) return {};
  if (parts % own == 0) return part(k % own);  // it grew: some of part k mod own
  if (own % parts == 0) return part(k);  // it shrank: parts k, k + parts, … are on one shard
  return {};
}

bool takes_away(const EntryParts& served, const EntryParts& next) {
  const unsigned ours = served.count();
  const unsigned theirs = next.count();
  for (unsigned k = 0; k < std::lcm(ours, std::max(theirs, 1U)); ++k) {
    const RouteFields before = served.part(k % ours);
    if (before.state == State::deleted) continue;
    if (theirs == 0) return true;
    const RouteFields after = next.part(k % theirs);
    if (after.state == State::deleted || after.shard != before.shard) return true;
  }
  return false;
}

SplitRoute route_split(const SplitRow& row, const Topology& topology, const EntryParts& served) {
  SplitRoute result;
  const auto parts = static_cast<unsigned>(row.parts.size());
  if (!is_number_of_parts(row.parts.size())) {
    result.why_not = fmt::format("is split into {} parts, 2 to {} are possible", parts, kPartsMax);
    result.missed = row.epoch;
    return result;
  }
  result.split = SplitFields{row.epoch, row.read_at, {}};
  for (unsigned k = 0; k < parts; ++k) {
    const EntryRow& part = row.parts[k];
    RowRoute routed = route_row(part, false, topology);
    const bool is_held = k < row.held.size() && row.held[k];
    if (part.shard.empty()) routed.why_not = "is missing";
    if (is_held || !routed.why_not.empty()) {
      if (result.missed == 0) {
        result.why_not =
            fmt::format("has a part {} that {}", k, is_held ? "is held" : routed.why_not);
      }
      const std::uint64_t epoch = part.epoch == 0 ? row.epoch : part.epoch;
      result.missed = result.missed == 0 ? epoch : std::min(result.missed, epoch);
      routed.route = served.for_part(k, parts);
      if (routed.route.state == State::none) result.split.reset();
    }
    if (!result.split) continue;
    routed.route.parts = static_cast<std::uint16_t>(parts);
    result.split->epoch = std::max(result.split->epoch, routed.route.epoch);
    result.split->parts.push_back(routed.route);
  }
  return result;
}

}  // namespace fingerpost
