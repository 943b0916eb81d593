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

}  // namespace fingerpost
