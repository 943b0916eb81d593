// Holds back what looks like an accident: more owners changed, tenants deleted or removed at once
// than anybody does by hand, and not by a verb of ours. It compares what would be served with what
// is served.
//
// Never held back: additions, FROZEN and MIGRATING, topology, and whatever a verb recorded. Held
// back rows are quarantined, so they come again until an approval names a version
// at or above theirs.
//
// One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "shm/segment_writer.h"
#include "syncer/batch.h"
#include "syncer/quarantine.h"

namespace fingerpost {

// The end of every message about what is withheld.
std::string how_to_approve(std::uint64_t version);

class PoisonGuard {
 public:
  // How many suspicious changes one sync, or one minute, may bring.
  static std::uint64_t limit(std::uint64_t entries) {
    return std::max<std::uint64_t>(10, entries / 200);
  }

  // Takes what must wait out of `batch` and quarantines it. How many that were.
  std::uint64_t screen(Batch& batch, const SegmentWriter<StdAtomics>& writer,
                       Quarantine& quarantine, std::int64_t now_ns);

  // Before the switch of a reload: how many entries of `served` have another owner in `next`, or
  // none, or are deleted there. More than limit(): the switch must wait for an approval.
  static std::uint64_t differences(const TableWriter<StdAtomics>& served,
                                   const TableWriter<StdAtomics>& next);

 private:
  struct Passed {
    std::int64_t at_ns;
    std::uint64_t count;
  };
  std::uint64_t passed_lately(std::int64_t now_ns);

  std::deque<Passed> passed_;  // suspicious, but few enough; of the last minute
};

}  // namespace fingerpost
