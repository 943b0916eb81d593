// Words that waiters sleep on. One writer.
//
// Why no wake is lost: the writer stores what changed, then bumps the word, then wakes. A waiter
// loads the word, then looks, then sleeps only while the word still holds what it loaded. If it
// looked before the change was visible, the bump comes after its load: either the word has changed
// when the kernel compares it, and the sleep is refused, or the waiter is queued before the wake,
// and is woken.
#pragma once

#include <cstdint>

#include "shm/atomics.h"

namespace fingerpost {

inline constexpr std::chrono::seconds kSleepMax{
    2};  // a waiter looks for itself at least this often

template <class A>
void bump_wait_word(typename A::Word32& word) noexcept {
  word.store(word.load(kAcquire) + 1, kRelease);  // pairs: wait-word
  A::wake_all(word);
}

template <class A>
std::uint32_t load_wait_word(const typename A::Word32& word) noexcept {
  return word.load(kAcquire);  // pairs: wait-word
}

}  // namespace fingerpost
