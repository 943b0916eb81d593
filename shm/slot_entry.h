// Reading whatever a slot holds, id included: for scans, where `read_slot` asks for one id.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "shm/slot.h"
#include "shm/tenant_id.h"

namespace fingerpost {

struct SlotEntry {
  std::array<char, kIdBytesMax + 1> bytes;
  std::size_t length = 0;
  std::uint64_t route = 0;  // the word of shm/route_word.h

  std::string_view id() const noexcept { return {bytes.data(), length}; }
};

// Fills `entry` from the slot; false if it is being rewritten, was rewritten meanwhile, or makes no
// sense. One look.
template <class A>
bool read_slot_entry(const Slot<A>& slot, RecordsView<A> records, SlotEntry& entry) noexcept {
  const std::uint64_t before = slot.header.load(kAcquire);  // pairs: slot-header
  const std::size_t length = slot_id_length(before);
  if (is_odd(slot_sequence(before)) || length == 0) return false;
  const auto copy_word = [&](std::size_t at, std::uint64_t word) {
    std::memcpy(entry.bytes.data() + at, &word, std::min<std::size_t>(8, length - at));
  };
  const std::size_t tail_words = IdShape<A>::tail_words(length);
  const std::size_t inline_end = tail_words != 0 ? IdShape<A>::kHeadBytes : length;
  for (std::size_t at = 0; at < inline_end; at += 8) {
    copy_word(at, slot.id[at / 8].load(kAcquire));  // pairs: slot-id
  }
  if (tail_words != 0) {
    const std::uint64_t tail = slot.id[A::kIdWords - 1].load(kAcquire);  // pairs: slot-id
    if (tail > records.count || records.count - tail < tail_words) return false;
    for (std::size_t i = 0; i < tail_words; ++i) {
      copy_word(IdShape<A>::kHeadBytes + i * 8, records.load(tail + i));
    }
  }
  entry.length = length;
  entry.route = slot.route.load(kAcquire);      // pairs: slot-route
  return slot.header.load(kAcquire) == before;  // pairs: slot-header
}

}  // namespace fingerpost
