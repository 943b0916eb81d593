// Judging how far to trust a segment. A pure function: the words as loaded, and what time it is.
#pragma once

#include <cstdint>

#include "reader/reader.h"
#include "shm/layout.h"

namespace fingerpost {

struct FreshnessWords {
  Serving serving = Serving::nothing;
  SourceState source = SourceState::none;
  std::int64_t last_sync_ns = kTimeUnknown;
  std::int64_t catch_up_by_ns = kTimeUnknown;
  std::uint64_t max_snapshot_age_ns = 0;
  std::uint64_t stale_after_ns = 0;
  bool superseded = false;
  bool full = false;  // rows were refused because the capacity is reached
};

Readiness judge(const FreshnessWords& words, std::int64_t now_ns) noexcept;

}  // namespace fingerpost
