// Many lookups whose memory accesses overlap. Progress as of each lookup alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "shm/resolve_at_home.h"

namespace fingerpost {

// At most so many share a look at the root: a switch sends those that are not done yet the long
// way.
inline constexpr std::size_t kBatchMax = 1'024;

// Several tenants, whose memory accesses overlap: a pipeline of three stages, kStage lookups each.
// The first asks for home groups and slots, the second for the slots whose fingerprints match
// elsewhere, the last compares ids; while it does, the memory of those behind it is on its way. All
// share the first look at the root, each has its own last one. `give(i, done, resolution)` is
// called for each in turn; not `done`: left to a whole lookup, as by resolve_at_home. Ids as for
// resolve().
inline constexpr std::size_t kStage = 16;  // about what a core keeps in flight

template <class A, bool kFallback, class Memory, class Half, class Give>
void run_batch(const Memory& memory, const PassStart<A, Half>& start,
               std::span<const std::string_view> ids, Give&& give) noexcept {
  std::array<Home, 4 * kStage> homes;
  const auto home_at = [&](std::size_t i) -> Home& { return homes[i % homes.size()]; };
  const auto end = [&](std::size_t begin) { return std::min(begin + kStage, ids.size()); };
  for (std::size_t begin = 0; begin < ids.size() + 2 * kStage; begin += kStage) {
    for (std::size_t i = begin; i < end(begin); ++i) {
      const Home home = start.home(index_hash(ids[i], start.seed));
      home_at(i) = home;
      prefetch_home(start.table, home);
    }
    if (begin < kStage) continue;
    const std::size_t matched = begin - kStage;
    for (std::size_t i = matched; i < end(matched); ++i) prefetch_match(start.table, home_at(i));
    if (matched < kStage) continue;
    const std::size_t finished = matched - kStage;
    for (std::size_t i = finished; i < end(finished); ++i) {
      Resolution found;
      const bool done =
          finish_at_home<A, kFallback, false>(memory, start, ids[i], home_at(i), found);
      give(i, done, found);
    }
  }
}

template <class A, class Memory, class Give>
[[gnu::always_inline]] inline void resolve_batch(const Memory& memory,
                                                 std::span<const std::string_view> ids,
                                                 Give&& give) noexcept {
  auto start = begin_pass<A>(memory);
  if (!start.half || !start.half.generation(start.table)) [[unlikely]] {
    for (std::size_t i = 0; i < ids.size(); ++i) give(i, false, Resolution{});
  } else if (start.table.geometry.fallback_count != 0) {
    run_batch<A, true>(memory, start, ids, give);
  } else {
    run_batch<A, false>(memory, start, ids, give);
  }
}

}  // namespace fingerpost
