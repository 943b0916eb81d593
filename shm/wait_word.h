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

// One turn of a waiter: true if `look()` says that there is nothing to wait for. `timeout`, where
// the policy has one: how long to sleep at most. May return early, so it is called in a loop.
template <class A, class Word, class Look, class... Timeout>
bool look_or_sleep(Word& word, Look&& look, Timeout... timeout) noexcept(noexcept(look())) {
  const std::uint32_t seen = load_wait_word<A>(word);
  if (look()) return true;
  A::wait(word, seen, timeout...);
  return false;
}

}  // namespace fingerpost
