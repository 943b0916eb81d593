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
  SegmentMemory(Byte* base, const SegmentPlan& plan) noexcept
      : base_(base), control_(reinterpret_cast<Control*>(base + plan.control_at)), plan_(plan) {}

  const SegmentPlan& plan() const noexcept { return plan_; }
  Header& header() const noexcept { return *reinterpret_cast<Header*>(base_); }
  Control& control() const noexcept { return *control_; }
  Byte* topology_region() const noexcept { return base_ + plan_.topology_at; }
  TopologyView<A> topology() const noexcept { return {topology_region(), plan_.topology_bytes}; }
  Byte* half(unsigned index) const noexcept { return base_ + plan_.half_at[index]; }

  const typename A::Word& root() const noexcept { return control().root; }

  // What of that half may be read.
  [[gnu::always_inline]] HalfView<A> half_view(unsigned index) const noexcept {
    const std::uint64_t allocated = control().allocated[index].load(kAcquire);  // pairs: allocated
    if (allocated < kTableHeaderBytes || allocated > plan_.half_bytes) return {};
    return {half(index), allocated};
  }
  // The generation there, seed and all; false as HalfView::generation.
  bool generation(unsigned index, Generation<A, false>& out) const noexcept {
    const HalfView<A> half = half_view(index);
    if (!half || !half.generation(out)) return false;
    out.seed = half.seed();
    return true;
  }

 private:
  Byte* base_ = nullptr;
  Control* control_ = nullptr;
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
