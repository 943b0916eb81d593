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

// Loads the geometry and seed from a table header. While the half is being rewritten for another
// generation they may be a mixture; whoever uses them looks at the root again before it believes
// anything.
template <class A>
Geometry load_geometry(const TableHeader<A>& header) noexcept {
  return {header.group_count.load(kAcquire),
          header.fallback_count.load(kAcquire),  // pairs: geometry
          header.records_words.load(kAcquire)};  // pairs: geometry
}

// Points `generation` at the parts that `geometry` describes, inside a half at `base`.
template <class A, bool kWritable, class Byte>
Generation<A, kWritable> place_generation(Byte* base, const Geometry& geometry) noexcept {
  using G = Generation<A, kWritable>;
  G g;
  g.geometry = geometry;
  g.header = reinterpret_cast<typename G::template Pointer<TableHeader<A>>>(base);
  g.groups = reinterpret_cast<typename G::template Pointer<Group<A>>>(base + geometry.groups_at());
  g.slots = reinterpret_cast<typename G::template Pointer<Slot<A>>>(base + geometry.slots_at());
  g.fallback = reinterpret_cast<typename G::template Pointer<typename A::Word>>(
      base + geometry.fallback_at());
  g.records = reinterpret_cast<typename G::template Pointer<typename A::Word>>(
      base + geometry.records_at());
  return g;
}

}  // namespace fingerpost
