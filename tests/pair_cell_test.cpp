#include "shm/pair_cell.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace fingerpost;

namespace {

using Four = std::array<std::uint64_t, 4>;

// Words under a writer that never rests: every load finds another value.
struct RestlessAtomics {
  struct Word {
    mutable std::uint64_t value = 0;
    mutable int loads = 0;
    std::uint64_t load(std::memory_order) const {
      ++loads;
      return ++value;
    }
  };
};

}  // namespace

TEST_CASE("a pair cell gives what was written last, and zeroes before the first write") {
  PairCell<StdAtomics, 4> cell{};
  CHECK(read_pair(cell) == Four{0, 0, 0, 0});
  for (std::uint64_t i = 1; i <= 5; ++i) {
    write_pair(cell, Four{i, i + 1, i + 2, i + 3});
    CHECK(read_pair(cell) == Four{i, i + 1, i + 2, i + 3});
  }
}

TEST_CASE(
    "a writer that died at any store of a write leaves the pair as it was, and the next writer "
    "goes on") {
  for (std::size_t stored = 0; stored <= 4; ++stored) {
    PairCell<StdAtomics, 4> cell{};
    write_pair(cell, Four{1, 2, 3, 4});
    const std::uint64_t next = cell.index.load(kAcquire) + 1;
    for (std::size_t i = 0; i < stored; ++i) cell.copy[next % 2][i].store(99, kRelease);
    CHECK(read_pair(cell) == Four{1, 2, 3, 4});
    write_pair(cell, Four{5, 6, 7, 8});
    CHECK(read_pair(cell) == Four{5, 6, 7, 8});
  }
}

TEST_CASE("reading a pair ends after a bounded number of passes under a writer that never rests") {
  PairCell<RestlessAtomics, 4> cell;
  CHECK(read_pair(cell) == std::nullopt);
  CHECK(cell.index.loads == 2 * kPairPassesMax);
}

TEST_CASE("words of a pair are never of two writes, whoever reads while it is written") {
  PairCell<StdAtomics, 4> cell{};
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> torn{0};
  std::atomic<std::uint64_t> went_back{0};
  const auto read = [&] {
    std::uint64_t last = 0;
    while (!done.load()) {
      const auto words = read_pair(cell);
      if (!words) continue;
      const std::uint64_t first = (*words)[0];
      for (std::uint64_t i = 1; i < 4; ++i) torn += (*words)[i] != first * (i + 1);
      went_back += first < last;
      last = first;
    }
  };
  std::thread a(read);
  std::thread b(read);
  for (std::uint64_t i = 1; i <= 200'000; ++i) write_pair(cell, Four{i, 2 * i, 3 * i, 4 * i});
  done = true;
  a.join();
  b.join();
  CHECK(torn == 0);
  CHECK(went_back == 0);
}
