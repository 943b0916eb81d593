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

// The fingerprint may belong to another id, and to a slot that is being rewritten: read_slot
// decides.
template <class A, bool kWritable>
[[gnu::always_inline]] inline Found find_in_table(const Generation<A, kWritable>& table,
                                                  const PackedId<A>& id, Home home) noexcept {
  const std::uint64_t group_count = table.geometry.group_count;
  const std::uint64_t bound = std::min(kProbeGroupsMax, group_count);
  // The limit is clamped: in a half under rewrite it may be anything.
  const std::uint64_t limit =
      std::min(table.header->probe_limit.load(kAcquire), bound);  // pairs: probe-limit
  std::uint64_t group = home.group;
  for (std::uint64_t step = 0; step < limit; ++step) {
    const std::uint64_t low = table.groups[group].low.load(kAcquire);    // pairs: fingerprint
    const std::uint64_t high = table.groups[group].high.load(kAcquire);  // pairs: fingerprint
    for (std::uint32_t hits = scan_vector(low, high, home.fingerprint); hits != 0;) {
      const std::uint64_t slot = group * kGroupSlots + pop_lowest(hits);
      const std::uint64_t route = read_slot(table.slots[slot], id, table.records_view());
      if (route != 0) return {slot, route};
    }
    if (scan_vector(low, high, kFingerprintEmpty) != 0) break;
    group = next_group(group, group_count);
  }
  return {};
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
