// Where the parts of a segment lie, from what is configured. Computed once by the creator;
// everybody else reads it from the file header.
#pragma once

#include <cstdint>
#include <optional>

#include "shm/layout.h"
#include "shm/table_writer.h"

namespace fingerpost {

inline constexpr std::uint64_t kHugeBytes = std::uint64_t{2}
                                            << 20;  // halves begin and grow in these steps
inline constexpr std::uint64_t kCapacityDefault = std::uint64_t{1} << 24;
inline constexpr std::uint64_t kCapacityMax = std::uint64_t{1} << 31;
inline constexpr std::uint64_t kTopologyBytesMin = std::uint64_t{64} << 10;
inline constexpr std::uint64_t kTopologyBytesMax = std::uint64_t{256} << 20;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

struct SegmentPlan {
  std::uint64_t capacity = kCapacityDefault;
  std::uint64_t control_at = 0;
  std::uint64_t topology_at = 0;
  std::uint64_t topology_bytes = 0;
  std::uint64_t half_at[2] = {0, 0};
  std::uint64_t half_bytes = 0;
  std::uint64_t span_bytes = 0;

  // `topology_bytes` 0: what fits, with header and control, in the first two megabytes.
  static constexpr SegmentPlan make(std::uint64_t capacity, std::uint64_t topology_bytes = 0) {
    SegmentPlan plan;
    plan.capacity = capacity;
    plan.control_at = kFileHeaderBytes;
    plan.topology_at =
        plan.control_at + round_up(sizeof(ControlBlock<StdAtomics>), kFileHeaderBytes);
    plan.topology_bytes = topology_bytes != 0 ? round_up(topology_bytes, kFileHeaderBytes)
                                              : kHugeBytes - plan.topology_at;
    plan.half_at[0] = round_up(plan.topology_at + plan.topology_bytes, kHugeBytes);
    // One record word per entry: directories of long ids reach the span before the capacity, and
    // are told so.
    const Geometry largest{groups_for(capacity), kBucketsMax, capacity + (std::uint64_t{1} << 17)};
    plan.half_bytes = round_up(largest.bytes(), kHugeBytes);
    plan.half_at[1] = plan.half_at[0] + plan.half_bytes;
    plan.span_bytes = plan.half_at[1] + plan.half_bytes;
    return plan;
  }

  // For the next segment, where the shards outgrow this one.
  constexpr std::uint64_t larger_topology_bytes() const {
    return topology_bytes > kTopologyBytesMax / 2 ? kTopologyBytesMax : topology_bytes * 2;
  }

  // What is reserved before anything is written: everything in front of the first half.
  constexpr std::uint64_t fixed_bytes() const { return half_at[0]; }

  // Whether offsets read from a file describe a segment that this build can map without stepping
  // outside it.
  constexpr bool plausible() const {
    constexpr std::uint64_t kSane = std::uint64_t{1} << 46;
    // Each term is bounded before sums are compared, so no sum wraps.
    return capacity >= 1 && capacity <= kCapacityMax && control_at < kSane && topology_at < kSane &&
           topology_bytes < kSane && half_at[0] < kSane && half_bytes < kSane &&
           control_at >= kFileHeaderBytes && control_at % kLineBytes == 0 &&
           topology_at % kLineBytes == 0 && half_at[0] % kFileHeaderBytes == 0 &&
           half_bytes % kFileHeaderBytes == 0 &&
           topology_at >= control_at + sizeof(ControlBlock<StdAtomics>) &&
           topology_bytes >= sizeof(TopologyHeader<StdAtomics>) &&
           half_at[0] >= topology_at + topology_bytes && half_at[1] == half_at[0] + half_bytes &&
           half_bytes >= kTableHeaderBytes && span_bytes == half_at[1] + half_bytes;
  }
};

}  // namespace fingerpost
