// A segment's bytes in plain memory of this process, as a writer and any number of threads see
// them. Whoever touches what was never reserved meets zeroes here: `reserved` tells how much that
// is.
#pragma once

#include <sys/mman.h>

#include <array>
#include <stdexcept>
#include <string>

#include "shm/segment_memory.h"
#include "shm/segment_writer.h"

namespace fingerpost {

class SegmentBuffer {
 public:
  explicit SegmentBuffer(std::uint64_t capacity, std::uint64_t topology_bytes = 0)
      : plan_(SegmentPlan::make(capacity, topology_bytes)) {
    void* memory = mmap(nullptr, plan_.span_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no memory for a segment");
    base_ = static_cast<std::byte*>(memory);
  }
  ~SegmentBuffer() { munmap(base_, plan_.span_bytes); }
  SegmentBuffer(const SegmentBuffer&) = delete;
  SegmentBuffer& operator=(const SegmentBuffer&) = delete;

  const SegmentPlan& plan() const { return plan_; }
  std::byte* base() { return base_; }
  SegmentMemory<StdAtomics, true> writable() { return {base_, plan_}; }
  SegmentMemory<StdAtomics, false> readable() const { return {base_, plan_}; }

  // Grants up to `limit` bytes of each half.
  Reserve reserve(std::uint64_t limit = ~std::uint64_t{0}) {
    return [this, limit](unsigned half, std::uint64_t bytes) -> Status {
      if (bytes > limit) return {Code::no_space, "the test grants " + std::to_string(limit)};
      reserved[half] = bytes;
      return {};
    };
  }

  std::array<std::uint64_t, 2> reserved{};

 private:
  SegmentPlan plan_;
  std::byte* base_ = nullptr;
};

}  // namespace fingerpost
