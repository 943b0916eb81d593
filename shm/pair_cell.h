// N words that belong together, readable at every moment: two copies and an index word. A plain
// sequence would leave them unreadable after a writer that died while it was odd.
//
// One writer. A read ends in at most kPairPassesMax passes, whatever the writer does.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "shm/atomics.h"

namespace fingerpost {

inline constexpr int kPairPassesMax = 8;

template <class A, std::size_t N>
struct PairCell {
  typename A::Word index;  // copy[index % 2] is current; grows by one with each write
  typename A::Word copy[2][N];
};

// Writes the copy that no reader of the current index looks at, then turns to it. Returns nothing:
// cannot fail.
template <class A, std::size_t N>
void write_pair(PairCell<A, N>& cell, const std::array<std::uint64_t, N>& values) noexcept {
  const std::uint64_t next = cell.index.load(kAcquire) + 1;
  for (std::size_t i = 0; i < N; ++i) {
    cell.copy[next % 2][i].store(values[i], kRelease);  // pairs: pair-copy
  }
  cell.index.store(next, kRelease);  // pairs: pair-index
}

// The index is the same before and after: then the copy it names was not being rewritten meanwhile,
// for the writer touches it only after it has stored the next index. nullopt: disturbed every time.
template <class A, std::size_t N>
std::optional<std::array<std::uint64_t, N>> read_pair(const PairCell<A, N>& cell) noexcept {
  for (int pass = 0; pass < kPairPassesMax; ++pass) {
    const std::uint64_t before = cell.index.load(kAcquire);  // pairs: pair-index
    std::array<std::uint64_t, N> values;
    for (std::size_t i = 0; i < N; ++i) {
      values[i] = cell.copy[before % 2][i].load(kAcquire);  // pairs: pair-copy
    }
    if (cell.index.load(kAcquire) == before) return values;  // pairs: pair-index
  }
  return std::nullopt;
}

}  // namespace fingerpost
