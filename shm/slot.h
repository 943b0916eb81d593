// The slot protocol: a sequence lock on which no reader ever waits.
//
// One writer. The sequence is odd while a slot is rewritten for another id, and only grows within a
// generation. A reader that meets an odd or changed sequence treats the slot as not its own and
// goes on: at that moment its id was not there. A change of the route of the same id is one store,
// and does not touch the sequence.
#pragma once

#include <cstdint>

#include "shm/layout.h"
#include "shm/packed_id.h"

namespace fingerpost {

constexpr std::uint64_t encode_slot_header(std::uint64_t sequence, std::size_t id_length) noexcept {
  return sequence << 16 | static_cast<std::uint64_t>(id_length) << 8;
}
constexpr std::uint64_t slot_sequence(std::uint64_t header) noexcept {
  return header >> 16;
}
constexpr std::size_t slot_id_length(std::uint64_t header) noexcept {
  return header >> 8 & 0xFF;
}
constexpr bool is_odd(std::uint64_t sequence) noexcept {
  return (sequence & 1) != 0;
}
// What a header must show of a slot to be the one of an id: an even sequence, and its length.
inline constexpr std::uint64_t kSlotShapeMask = encode_slot_header(1, 0xFF);

// The words of a generation's records area, bounded: a word outside reads as 0.
template <class A>
struct RecordsView {
  const typename A::Word* words = nullptr;
  std::uint64_t count = 0;

  std::uint64_t load(std::uint64_t offset) const noexcept {
    return offset < count ? words[offset].load(kAcquire) : 0;  // pairs: record
  }
};

// Whether the slot holds `id`, which is too long for it: its head there, its tail in the records.
template <class A>
[[gnu::noinline]] bool slot_holds_long_id(const Slot<A>& slot, PackedId<A> id,
                                          RecordsView<A> records) noexcept {
  for (std::size_t i = 0; i < A::kIdWords - 1; ++i) {
    if (slot.id[i].load(kAcquire) != id.full_word(i)) return false;  // pairs: slot-id
  }
  const std::uint64_t tail = slot.id[A::kIdWords - 1].load(kAcquire);  // pairs: slot-id
  for (std::size_t i = 0; i < id.tail_words(); ++i) {
    if (records.load(tail + i) != id.tail_word(i)) return false;
  }
  return true;
}

// Whether the words of the slot from number kFirst on are those of an id that fits. One word a
// step, unrolled by the compiler.
template <class A, std::size_t kFirst = 0>
[[gnu::always_inline]] inline bool slot_holds_words(const Slot<A>& slot,
                                                    const PackedId<A>& id) noexcept {
  if constexpr (kFirst == A::kIdWords) {
    return true;
  } else {
    if (kFirst == id.full_words()) {
      return !id.has_rest() || slot.id[kFirst].load(kAcquire) == id.rest_word();  // pairs: slot-id
    }
    return slot.id[kFirst].load(kAcquire) == id.full_word(kFirst) &&  // pairs: slot-id
           slot_holds_words<A, kFirst + 1>(slot, id);
  }
}

// Whether the slot's id, as far as it can be seen now, is `id`. Meaningful only if the header is
// the same before and after.
template <class A>
[[gnu::always_inline]] inline bool slot_holds_id(const Slot<A>& slot, const PackedId<A>& id,
                                                 RecordsView<A> records) noexcept {
  if (id.is_long()) [[unlikely]]
    return slot_holds_long_id(slot, id, records);
  return slot_holds_words(slot, id);
}

// The route word of `id` if the slot is its own; kNoRoute otherwise. Bounded: one look.
template <class A>
[[gnu::always_inline]] inline std::uint64_t read_slot(const Slot<A>& slot, const PackedId<A>& id,
                                                      RecordsView<A> records) noexcept {
  const std::uint64_t before = slot.header.load(kAcquire);  // pairs: slot-header
  if ((before & kSlotShapeMask) != encode_slot_header(0, id.length())) return 0;
  if (!slot_holds_id(slot, id, records)) return 0;
  const std::uint64_t route = slot.route.load(kAcquire);   // pairs: slot-route
  const std::uint64_t after = slot.header.load(kAcquire);  // pairs: slot-header
  return before == after ? route : 0;
}

// Rewrites a slot that no fingerprint shows, for `id`. `unused`: this generation has not used the
// slot before, so what lies in it means nothing. `tail` is the offset of the tail words, already
// written, of a long id. `show()` stores the fingerprint, while the slot is odd: the even header
// alone is the moment of the insertion. A reader whose fingerprint is an older one, of an id that
// had the slot before, would see the new entry at the even header, another one only at the
// fingerprint: told the new route first, and the old one after it.
template <class A, class Show>
void rewrite_slot(Slot<A>& slot, const PackedId<A>& id, std::uint64_t tail, std::uint64_t route,
                  bool unused, Show&& show) noexcept {
  const std::uint64_t last = unused ? 0 : slot_sequence(slot.header.load(kAcquire));
  const std::uint64_t odd = is_odd(last) ? last + 2 : last + 1;
  slot.header.store(encode_slot_header(odd, 0), kRelease);  // pairs: slot-header
  for (std::size_t i = 0; i < A::kIdWords; ++i) {
    const bool is_tail = id.is_long() && i == A::kIdWords - 1;
    slot.id[i].store(is_tail ? tail : id.inline_word(i), kRelease);  // pairs: slot-id
  }
  slot.route.store(route, kRelease);  // pairs: slot-route
  show();
  slot.header.store(encode_slot_header(odd + 1, id.length()), kRelease);  // pairs: slot-header
}

// Frees a slot that a dead writer left odd: rewritten whole, with an id no request can have (no
// bytes). Making it even alone would show a mixture of two ids.
template <class A>
void free_slot(Slot<A>& slot) noexcept {
  const std::uint64_t last = slot_sequence(slot.header.load(kAcquire));
  const std::uint64_t odd = is_odd(last) ? last + 2 : last + 1;
  slot.header.store(encode_slot_header(odd, 0), kRelease);  // pairs: slot-header
  for (std::size_t i = 0; i < A::kIdWords; ++i) slot.id[i].store(0, kRelease);  // pairs: slot-id
  slot.route.store(0, kRelease);                                                // pairs: slot-route
  slot.header.store(encode_slot_header(odd + 1, 0), kRelease);  // pairs: slot-header
}

}  // namespace fingerpost
