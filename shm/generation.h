// One generation of the table inside a half: where its parts lie, loaded once and bounded once.
#pragma once

#include <cstdint>
#include <type_traits>

#include "shm/layout.h"
#include "shm/slot.h"

namespace fingerpost {

// kWritable: the writer's, whose pointers store. A reader's lies in memory mapped read-only.
template <class A, bool kWritable>
struct Generation {
  template <class T>
  using Pointer = std::conditional_t<kWritable, T*, const T*>;

  Geometry geometry;
  std::uint64_t seed = 0;
  Pointer<TableHeader<A>> header = nullptr;
  Pointer<Group<A>> groups = nullptr;
  Pointer<Slot<A>> slots = nullptr;
  Pointer<typename A::Word> fallback = nullptr;
  Pointer<typename A::Word> records = nullptr;

  RecordsView<A> records_view() const noexcept { return {records, geometry.records_words}; }
};

// Loads the geometry from a table header. While the half is being rewritten for another generation
// it may be a mixture; whoever uses it looks at the root again before it believes anything.
//
// Here and below results are filled in place, number by number: copied as a whole they go through
// wide loads that the processor cannot serve from the narrow stores before them. Such a load waits
// until those have retired, behind the memory access of the lookup before, and no two lookups
// overlap.
template <class A>
[[gnu::always_inline]] inline void load_geometry(const TableHeader<A>& header,
                                                 Geometry& out) noexcept {
  out.group_count = header.group_count.load(kAcquire);        // pairs: geometry
  out.fallback_count = header.fallback_count.load(kAcquire);  // pairs: geometry
  out.records_words = header.records_words.load(kAcquire);    // pairs: geometry
}

// Points `generation` at the parts that its geometry describes, inside a half at `base`.
template <class A, bool kWritable, class Byte>
[[gnu::always_inline]] inline void place_generation(Byte* base,
                                                    Generation<A, kWritable>& generation) noexcept {
  using G = Generation<A, kWritable>;
  const Geometry& geometry = generation.geometry;
  generation.header = reinterpret_cast<typename G::template Pointer<TableHeader<A>>>(base);
  generation.groups =
      reinterpret_cast<typename G::template Pointer<Group<A>>>(base + geometry.groups_at());
  generation.slots =
      reinterpret_cast<typename G::template Pointer<Slot<A>>>(base + geometry.slots_at());
  generation.fallback = reinterpret_cast<typename G::template Pointer<typename A::Word>>(
      base + geometry.fallback_at());
  generation.records = reinterpret_cast<typename G::template Pointer<typename A::Word>>(
      base + geometry.records_at());
}

// The bytes of a half that may be read: none, or a table header at least.
template <class A>
class HalfView {
 public:
  HalfView() noexcept = default;
  HalfView(const std::byte* base, std::uint64_t allocated) noexcept
      : header_(reinterpret_cast<const TableHeader<A>*>(base)), allocated_(allocated) {}

  explicit operator bool() const noexcept { return header_ != nullptr; }
  std::uint64_t seed() const noexcept { return header_->seed.load(kAcquire); }  // pairs: geometry

  bool has_fallback() const noexcept {
    return header_->fallback_count.load(kAcquire) != 0;  // pairs: geometry
  }

  // Points `out`, all but its seed, at the generation in this half; false unless all of it lies in
  // what is allocated. A mixture of two generations may pass: the root, looked at again, tells.
  [[gnu::always_inline]] bool generation(Generation<A, false>& out) const noexcept {
    load_geometry(*header_, out.geometry);
    if (!out.geometry.plausible() || out.geometry.bytes() > allocated_) return false;
    place_generation(reinterpret_cast<const std::byte*>(header_), out);
    return true;
  }

 private:
  const TableHeader<A>* header_ = nullptr;
  std::uint64_t allocated_ = 0;
};

}  // namespace fingerpost
