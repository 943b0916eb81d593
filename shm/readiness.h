// Judging how far to trust a segment. A pure function: the words as loaded, and what time it is.
#pragma once

#include <cstdint>
#include <string_view>

#include "shm/layout.h"

namespace fingerpost {

// How far to trust what is served, judged now.
struct Readiness {
  bool ready = false;  // complete, and caught up once or served from data young enough
  bool stale = false;  // the data is older than the syncer's `stale_after`, or its age is unknown
  std::string_view reason;  // why not ready, or why stale; empty if neither. Static lifetime.
};

struct FreshnessWords {
  Serving serving = Serving::nothing;
  SourceState source = SourceState::none;
  std::int64_t last_sync_ns = kTimeUnknown;
  std::int64_t catch_up_by_ns = kTimeUnknown;
  std::uint64_t max_snapshot_age_ns = 0;
  std::uint64_t stale_after_ns = 0;
  bool superseded = false;
  bool full = false;  // rows of the directory find no room: capacity or memory
};

FreshnessWords load_freshness_words(const ControlBlock<StdAtomics>& control) noexcept;

Readiness judge(const FreshnessWords& words, std::int64_t now_ns) noexcept;

}  // namespace fingerpost
