// The bytes of a mapped segment by name. Offsets come from a plan that was found plausible; what a
// half holds is bounded by its allocated length at every use.
#pragma once

#include <cstdint>
#include <type_traits>

#include "shm/generation.h"
#include "shm/segment_plan.h"
#include "shm/topology_view.h"

namespace fingerpost {

template <class A, bool kWritable>
class SegmentMemory {
 public:
  using Byte = std::conditional_t<kWritable, std::byte, const std::byte>;
  using Control = std::conditional_t<kWritable, ControlBlock<A>, const ControlBlock<A>>;
  using Header = std::conditional_t<kWritable, FileHeader<A>, const FileHeader<A>>;

  SegmentMemory() noexcept = default;
  SegmentMemory(Byte* base, const SegmentPlan& plan) noexcept : base_(base), plan_(plan) {}

  const SegmentPlan& plan() const noexcept { return plan_; }
  Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }
  Control& control() const noexcept {
    return *reinterpret_cast<Control*>(base_ + plan_.control_at);
  }
  Byte* topology_region() const noexcept { return base_ + plan_.topology_at; }
  TopologyView<A> topology() const noexcept { return {topology_region(), plan_.topology_bytes}; }
  Byte* half(unsigned index) const noexcept { return base_ + plan_.half_at[index]; }

  const typename A::Word& root() const noexcept { return control().root; }

  // Points `out` at the generation in that half; false unless all of it lies in what is allocated.
  // A mixture of two generations may pass: the root, looked at again, tells.
  [[gnu::always_inline]] bool generation(unsigned index, Generation<A, false>& out) const noexcept {
    const std::byte* base = half(index);
    const std::uint64_t allocated = control().allocated[index].load(kAcquire);  // pairs: allocated
    if (allocated < kTableHeaderBytes || allocated > plan_.half_bytes) return false;
    const auto& header = *reinterpret_cast<const TableHeader<A>*>(base);
    load_geometry(header, out.geometry);
    if (!out.geometry.plausible() || out.geometry.bytes() > allocated) return false;
    place_generation(base, out);
    out.seed = header.seed.load(kAcquire);  // pairs: geometry
    return true;
  }

 private:
  Byte* base_ = nullptr;
  SegmentPlan plan_;
};

// The plan that a file header carries, as loaded.
template <class A>
SegmentPlan load_plan(const FileHeader<A>& header) noexcept {
  SegmentPlan plan;
  plan.capacity = header.capacity.load(kAcquire);              // pairs: complete
  plan.control_at = header.control_at.load(kAcquire);          // pairs: complete
  plan.topology_at = header.topology_at.load(kAcquire);        // pairs: complete
  plan.topology_bytes = header.topology_bytes.load(kAcquire);  // pairs: complete
  plan.half_at[0] = header.half_at[0].load(kAcquire);          // pairs: complete
  plan.half_at[1] = header.half_at[1].load(kAcquire);          // pairs: complete
  plan.half_bytes = header.half_bytes.load(kAcquire);          // pairs: complete
  plan.span_bytes = header.span_bytes.load(kAcquire);          // pairs: complete
  return plan;
}

}  // namespace fingerpost
