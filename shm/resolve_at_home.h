// The short way through a pass of a lookup (shm/resolve_pass.h): the same loads in the same order,
// for what nearly every lookup meets.
#pragma once

#include <cstdint>
#include <string_view>

#include "shm/resolve_pass.h"

namespace fingerpost {

// The usual case of a first pass, and no more: an id that fits a slot, and a route that fits its
// word. false: leave it to a whole lookup, which begins anew. What is left lies in registers, so
// that more lookups of one thread fit into the processor at a time, which is what makes their
// memory accesses overlap: hence a function each for tables with a fallback rule and without, and
// kHomeOnly, which leaves what lies behind its home group to others as well.
template <class A, bool kFallback, bool kHomeOnly, class Memory, class Half>
[[gnu::always_inline]] inline bool finish_at_home(const Memory& memory,
                                                  const PassStart<A, Half>& start,
                                                  std::string_view id, Home home,
                                                  Resolution& found) noexcept {
  const PackedId<A> packed(id);
  if (packed.is_long()) [[unlikely]]
    return false;
  const Generation<A, false>& table = start.table;
  const std::uint64_t count = table.geometry.fallback_count;
  if ((count != 0) != kFallback) [[unlikely]]
    return false;
  std::uint64_t word = kNoRoute;
  found.source = RouteSource::override_entry;
  if constexpr (kFallback) {
    const typename A::Word& rule = table.fallback[fallback_index(placement_hash(id), count)];
    const std::uint64_t before = rule.load(kAcquire);  // pairs: fallback
    word = find_in_table(table, packed, home).route;
    if (word == kNoRoute) {
      word = rule.load(kAcquire);  // pairs: fallback
      if (word != before) [[unlikely]]
        return false;
      found.source = source_of_fallback(table);
    }
  } else if constexpr (kHomeOnly) {
    bool is_last = false;
    word = find_in_group(table, packed, home.fingerprint, home.group, is_last).route;
    if (word == kNoRoute && !is_last) [[unlikely]]
      return false;
  } else {
    word = find_in_table(table, packed, home).route;
  }
  if (memory.root().load(kAcquire) != start.root) [[unlikely]]
    return false;  // pairs: root
  if (has_record(word)) [[unlikely]]
    return false;
  found.route = decode_inline(word);
  found.answer = answer_of(found.route);
  found.root = start.root;
  if (found.answer == Answer::unknown) [[unlikely]] {
    found.source = RouteSource::none;
    found.route = {};
    return word == kNoRoute;  // else bytes that make no sense
  }
  return true;
}

// The same from the root on, for one id. Asked of a table of the other kind it gives up before it
// has hashed anything.
template <class A, bool kFallback, class Memory>
[[gnu::always_inline]] inline bool resolve_at_home(const Memory& memory, std::string_view id,
                                                   Resolution& found) noexcept {
  auto start = begin_pass<A>(memory);
  if (!start.half || start.half.has_fallback() != kFallback) [[unlikely]]
    return false;
  const std::uint64_t hash = index_hash(id, start.seed);
  if (!start.half.generation(start.table)) [[unlikely]]
    return false;
  const Home home = start.home(hash);
  prefetch_home(start.table, home);
  return finish_at_home<A, kFallback, true>(memory, start, id, home, found);
}

}  // namespace fingerpost
