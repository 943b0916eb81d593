// The words of the control block that say how fresh the data is. The syncer stores them here and
// nowhere else.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "shm/layout.h"

namespace fingerpost {

struct FreshnessPolicy {
  std::chrono::nanoseconds stale_after = std::chrono::seconds(10);
  std::chrono::nanoseconds max_snapshot_age = std::chrono::hours(24);
  std::chrono::nanoseconds catch_up_wait = std::chrono::seconds(5);
};

// What the syncer knows of its source. Kept by the syncer, stored whole, so that a successor
// segment gets it too.
struct Freshness {
  Serving serving = Serving::nothing;
  SourceState source = SourceState::none;
  std::int64_t last_sync_ns =
      kTimeUnknown;  // CLOCK_BOOTTIME; may lie before boot, for a snapshot's
  std::int64_t catch_up_by_ns =
      kTimeUnknown;  // until then, data that is not caught up is not ready
};

void store_policy(ControlBlock<StdAtomics>& control, const FreshnessPolicy& policy,
                  std::string_view source_kind);
void store_freshness(ControlBlock<StdAtomics>& control, const Freshness& freshness);
void store_heartbeat(ControlBlock<StdAtomics>& control, std::int64_t now_ns);
// Cut to what fits.
void store_last_error(ControlBlock<StdAtomics>& control, std::string_view text);

// What the segment says; of a dead syncer's, when its data was last in step with the directory.
Freshness load_freshness(const ControlBlock<StdAtomics>& control);

}  // namespace fingerpost
