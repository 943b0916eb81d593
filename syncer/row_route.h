// From a row of the directory to what the segment stores. Pure: a row, the layout and the topology
// in; a route or the reason why there is none out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/route_fields.h"
#include "shm/topology_writer.h"
#include "syncer/batch.h"

namespace fingerpost {

using Topology = TopologyWriter<StdAtomics>;

// Where a row belongs.
struct RowPlace {
  std::optional<std::uint32_t> bucket;  // of a bucket row; else an override
  std::string_view why_not;  // the row cannot be applied; empty if it can. Static lifetime.
};
RowPlace place_row(std::string_view entry_id, const DirectoryLayout& layout);

struct RowRoute {
  RouteFields route;
  std::string_view why_not;  // as above: an unknown shard, a bucket that is DELETED
};
// An unknown state is served as not writable; an unknown target is left out. Only an unknown shard
// is no route.
RowRoute route_row(const EntryRow& row, bool is_bucket, const Topology& topology);

}  // namespace fingerpost
