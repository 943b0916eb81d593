// Counts of durations in steps of at most 1/32 of their value, in plain words that may lie in
// memory shared with another process. One thread fills it; whoever reads waits until that is done.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fingerpost::bench {

class Histogram {
 public:
  void clear() { counts_.fill(0); }
  void record(std::uint64_t value) { ++counts_[index(value)]; }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  }

  std::uint64_t samples() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : counts_) sum += count;
    return sum;
  }

  // The value that the share `part` of the samples does not exceed; 0 without samples.
  std::uint64_t quantile(double part) const {
    const auto rank = static_cast<std::uint64_t>(part * static_cast<double>(samples()));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > rank) return value(i);
    }
    return 0;
  }

 private:
  static constexpr unsigned kStepBits = 5;
  static constexpr std::uint64_t kSteps = std::uint64_t{1} << kStepBits;

  static std::size_t index(std::uint64_t value) {
    if (value < kSteps) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kStepBits - 1;
    return static_cast<std::size_t>((shift + 1) * kSteps + (value >> shift) - kSteps);
  }
  // The largest value of that index.
  static std::uint64_t value(std::size_t i) {
    if (i < kSteps) return i;
    const std::uint64_t shift = i / kSteps - 1;
    return ((kSteps + i % kSteps + 1) << shift) - 1;
  }

  std::array<std::uint64_t, (64 - kStepBits + 1) * kSteps> counts_{};
};

}  // namespace fingerpost::bench
