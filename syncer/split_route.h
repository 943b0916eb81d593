// From a split tenant's rows to the record that the segment stores. Pure: rows, topology and what
// is served in; a record, or the reason why there is none, out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/segment_writer.h"
#include "syncer/batch.h"
#include "syncer/row_route.h"

namespace fingerpost {

// A tenant's own entry as parts: as many as it is split into, or one that has all objects.
class EntryParts {
 public:
  // What `table` says of `id` at the time of each call.
  EntryParts(const TableWriter<StdAtomics>& table, std::string_view id)
      : whole_(table.find(id)), split_(table.find_split(id)) {}
  // One that is not split.
  explicit EntryParts(const RouteFields& route) : whole_(route) {}

  // 0: no entry.
  unsigned count() const { return whole_.state == State::none ? 0 : std::max(1U, split_.parts()); }
  // Part k below count().
  RouteFields part(unsigned k) const;
  // What answers for the objects of part `k` of `parts`; state none if that is not one part.
  RouteFields for_part(unsigned k, unsigned parts) const;
  // The version that orders changes of the entry.
  std::uint64_t order() const { return split_.parts() == 0 ? whole_.epoch : split_.read_at(); }
  std::uint64_t epoch() const { return whole_.epoch; }

 private:
  RouteFields whole_;
  SplitView<StdAtomics> split_;
};

// Whether going from `served` to `next` takes any object away from where its data is, a tenant that
// goes or is deleted included.
bool takes_away(const EntryParts& served, const EntryParts& next);

struct SplitRoute {
  std::optional<SplitFields> split;  // what can be served of it
  std::string why_not;               // the first part that cannot be, and why; empty: all can
  std::uint64_t missed = 0;          // the lowest epoch among those that cannot be
};
// A part that cannot be served, or is held, stays as `served` has it; where that has nothing for
// it, nothing of the split can be served.
SplitRoute route_split(const SplitRow& row, const Topology& topology, const EntryParts& served);

}  // namespace fingerpost
