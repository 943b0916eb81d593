// Finding an id in one generation. Readers and the writer use the same search.
//
// Progress: at most kProbeGroupsMax groups of sixteen, whatever the writer does. Nothing moves
// within a generation, so an entry that stays is never missed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shm/generation.h"
#include "shm/group_scan.h"

namespace fingerpost {

// Where an index hash sends an id.
struct Home {
  std::uint64_t group;
  unsigned position;         // the slot an entry prefers inside its group
  std::uint8_t fingerprint;  // 0x80 | seven bits
};

// Multiply-shift takes the high bits for the group; position and fingerprint come from the low
// ones.
inline Home home_of(std::uint64_t hash, std::uint64_t group_count) noexcept {
  __extension__ using Wide = unsigned __int128;
  return {static_cast<std::uint64_t>(static_cast<Wide>(hash) * group_count >> 64),
          static_cast<unsigned>(hash & 15), static_cast<std::uint8_t>(0x80 | (hash >> 4 & 0x7F))};
}

// The group after `group`, round the end.
constexpr std::uint64_t next_group(std::uint64_t group, std::uint64_t group_count) noexcept {
  return group + 1 == group_count ? 0 : group + 1;
}

inline constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};

struct Found {
  std::uint64_t slot = kNoSlot;
  std::uint64_t route = 0;  // the word of shm/route_word.h; 0: not found
};

// Groups that a lookup may have to visit; clamped, since in a half under rewrite it may be
// anything.
template <class A, bool kWritable>
std::uint64_t probe_limit(const Generation<A, kWritable>& table) noexcept {
  const std::uint64_t bound = std::min(kProbeGroupsMax, table.geometry.group_count);
  return std::min(table.header->probe_limit.load(kAcquire), bound);  // pairs: probe-limit
}

// The id's slot in one group. The fingerprint may belong to another id, and to a slot that is being
// rewritten: read_slot decides. `is_last`: the group has an empty place, so no probe goes on behind
// it.
template <class A, bool kWritable>
[[gnu::always_inline]] inline Found find_in_group(const Generation<A, kWritable>& table,
                                                  const PackedId<A>& id, std::uint8_t fingerprint,
                                                  std::uint64_t group, bool& is_last) noexcept {
  const std::uint64_t low = table.groups[group].low.load(kAcquire);    // pairs: fingerprint
  const std::uint64_t high = table.groups[group].high.load(kAcquire);  // pairs: fingerprint
  for (std::uint32_t hits = scan_vector(low, high, fingerprint); hits != 0;) {
    const std::uint64_t slot = group * kGroupSlots + pop_lowest(hits);
    const std::uint64_t route = read_slot(table.slots[slot], id, table.records_view());
    if (route != 0) [[likely]]
      return {slot, route};
  }
  is_last = scan_vector(low, high, kFingerprintEmpty) != 0;
  return {};
}

// The rest of the search, behind the home group.
template <class A, bool kWritable>
[[gnu::noinline]] Found find_behind_home(const Generation<A, kWritable>& table, PackedId<A> id,
                                         Home home) noexcept {
  const std::uint64_t limit = probe_limit(table);
  std::uint64_t group = home.group;
  for (std::uint64_t step = 1; step < limit; ++step) {
    group = next_group(group, table.geometry.group_count);
    bool is_last = false;
    const Found found = find_in_group(table, id, home.fingerprint, group, is_last);
    if (found.route != 0 || is_last) return found;
  }
  return {};
}

template <class A, bool kWritable>
[[gnu::always_inline]] inline Found find_in_table(const Generation<A, kWritable>& table,
                                                  const PackedId<A>& id, Home home) noexcept {
  bool is_last = false;
  const Found found = find_in_group(table, id, home.fingerprint, home.group, is_last);
  if (found.route != 0 || is_last) [[likely]]
    return found;
  // Of a copy, made number by number: what has its address given away leaves the registers.
  const Geometry& shape = table.geometry;
  const Generation<A, kWritable> copy{
      {shape.group_count, shape.fallback_count, shape.records_words},
      table.seed,
      table.header,
      table.groups,
      table.slots,
      table.fallback,
      table.records};
  return find_behind_home(copy, id, home);
}

// Inlined by force: g++ takes a function that does nothing but prefetch for one without effect, and
// removes the call to it.
template <class A, bool kWritable>
[[gnu::always_inline]] inline void prefetch_home(const Generation<A, kWritable>& table,
                                                 Home home) noexcept {
  __builtin_prefetch(&table.groups[home.group]);
  __builtin_prefetch(&table.slots[home.group * kGroupSlots + home.position]);
}

// Asks for the first slot whose fingerprint matches in the home group, which has come by now.
template <class A, bool kWritable>
[[gnu::always_inline]] inline void prefetch_match(const Generation<A, kWritable>& table,
                                                  Home home) noexcept {
  const Group<A>& group = table.groups[home.group];
  std::uint32_t hits =
      scan_vector(group.low.load(kAcquire), group.high.load(kAcquire), home.fingerprint);
  if (hits != 0) __builtin_prefetch(&table.slots[home.group * kGroupSlots + pop_lowest(hits)]);
}

}  // namespace fingerpost
