// The whole of a lookup.
//
// Wait-free: at most kPassesMax passes after a first short one, each with a bounded number of steps
// (shm/resolve_pass.h). Any number of threads.
#pragma once

#include <string_view>

#include "shm/resolve_at_home.h"
#include "shm/resolve_pass.h"

namespace fingerpost {

// A generation switch every 10 ms disturbs a lookup a few hundred times a second; eight times in a
// row is a writer gone mad, or bytes that make no sense.
inline constexpr int kPassesMax = 8;

// As many passes as it takes.
template <class A, class Memory, class Follow>
[[gnu::always_inline]] inline Resolution resolve_following(const Memory& memory,
                                                           std::string_view id,
                                                           Follow&& follow) noexcept {
  for (int pass = 1; pass <= kPassesMax; ++pass) {
    Resolution found;
    if (!resolve_pass<A>(memory, id, follow, found)) continue;
    found.passes = pass;
    return found;
  }
  Resolution undetermined;
  undetermined.passes = kPassesMax;
  return undetermined;
}

// The same, but for the short way at first.
template <class A, class Memory, class Follow>
[[gnu::always_inline]] inline Resolution resolve_shortly(const Memory& memory, std::string_view id,
                                                         Follow&& follow) noexcept {
  Resolution found;
  if (resolve_at_home<A, false>(memory, id, found)) return found;
  if (resolve_at_home<A, true>(memory, id, found)) return found;
  return resolve_following<A>(memory, id, follow);
}

// The tenant as a whole. Of a split one: that it is split, and into how many parts.
template <class A, class Memory>
[[gnu::always_inline]] inline Resolution resolve(const Memory& memory,
                                                 std::string_view id) noexcept {
  return resolve_shortly<A>(memory, id, WholeTenant<A>{});
}

// Of a split tenant the part that `object` belongs to; of any other tenant the same as without it.
template <class A, class Memory>
Resolution resolve(const Memory& memory, std::string_view id, std::string_view object) noexcept {
  return resolve_shortly<A>(memory, id, PartOfObject<A>{object});
}

// The tenant as a whole, and before it `visit(k, route)` for each part of a split one, all out of
// one record. Where the lookup was disturbed the parts are visited again: those of the last time
// count, and none if the answer is not `split`.
template <class A, class Memory, class Visit>
Resolution resolve_all(const Memory& memory, std::string_view id, Visit&& visit) noexcept {
  return resolve_shortly<A>(memory, id, EachPart<A, Visit>{visit});
}

}  // namespace fingerpost
