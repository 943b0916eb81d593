// A whole segment of some hundred kilobytes in private memory, so that it can be copied for every
// cut: two halves for tables of up to 64 slots, control block and topology as they ship.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "shm/segment_memory.h"
#include "shm/segment_writer.h"

namespace fingerpost {

class SmallSegment {
 public:
  SmallSegment() : lines_(plan().span_bytes / kLineBytes) {}

  static constexpr SegmentPlan plan() {
    SegmentPlan plan;
    plan.capacity = 48;
    plan.control_at = kFileHeaderBytes;
    plan.topology_at = plan.control_at + kFileHeaderBytes;
    plan.topology_bytes = kFileHeaderBytes;
    plan.half_at[0] = plan.topology_at + plan.topology_bytes;
    plan.half_bytes = 12 * kFileHeaderBytes;
    plan.half_at[1] = plan.half_at[0] + plan.half_bytes;
    plan.span_bytes = plan.half_at[1] + plan.half_bytes;
    return plan;
  }

  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(lines_)); }
  template <class A>
  SegmentMemory<A, true> writable() {
    return {bytes().data(), plan()};
  }
  template <class A>
  SegmentMemory<A, false> readable() const {
    return {bytes().data(), plan()};
  }

 private:
  struct alignas(kLineBytes) Line {
    std::byte bytes[kLineBytes];
  };
  std::vector<Line> lines_;
};
static_assert(SmallSegment::plan().plausible());

// All of the memory is there already.
inline Reserve reserve_nothing() {
  return [](unsigned, std::uint64_t) { return Status(); };
}

}  // namespace fingerpost
