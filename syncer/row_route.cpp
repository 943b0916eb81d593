#include "syncer/row_route.h"

#include "shm/tenant_id.h"

namespace fingerpost {
namespace {

std::uint16_t index_of(std::string_view name, const Topology& topology) {
  const std::uint16_t index = topology.index_of(std::string(name));
  return index != kNoShard && topology.is_removed(index) ? kNoShard : index;
}

}  // namespace

RowPlace place_row(std::string_view entry_id, const DirectoryLayout& layout) {
  if (const auto why = why_not_entry_id(entry_id)) return {std::nullopt, *why};
  if (entry_id.starts_with(kPartPrefix))
    return {std::nullopt, "is a part, which is nothing without its tenant"};
  const auto bucket = bucket_of_entry_id(entry_id);
  if (!bucket) return {};
  if (*bucket >= layout.buckets) return {std::nullopt, "is a bucket beyond the directory's"};
  return {bucket, {}};
}

RowRoute route_row(const EntryRow& row, bool is_bucket, const Topology& topology) {
  RowRoute result;
  result.route.state = parse_state(row.state);
  result.route.epoch = row.epoch;
  result.route.shard = index_of(row.shard, topology);
  if (result.route.state == State::deleted) {
    if (is_bucket) result.why_not = "is a bucket, which cannot be DELETED";
    return result;
  }
  if (result.route.shard == kNoShard)
    result.why_not = "names a shard that the topology does not have";
  if (!row.target.empty()) result.route.target = index_of(row.target, topology);
  return result;
}

}  // namespace fingerpost
