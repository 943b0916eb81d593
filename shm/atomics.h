// The atomics that ship. Every protocol function in this folder is a template over such a policy
// `A`, so that the tests run the very same code over words that record each store (cuts) or explore
// each interleaving.
//
// One rule for ordering (shm/LAYOUT.md): no fences, nothing relaxed; every load of a shared word is
// an acquire, every store to one a release. A store names the load it pairs with by a tag: `pairs:
// NAME`.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fingerpost {

inline constexpr auto kAcquire = std::memory_order_acquire;
inline constexpr auto kRelease = std::memory_order_release;

struct StdAtomics {
  using Word = std::atomic<std::uint64_t>;
  using Word32 = std::atomic<std::uint32_t>;  // what a futex waits on
  static constexpr std::size_t kIdWords = 6;  // inline id bytes of a slot, in words

  // Blocks while `word` holds `expected`, at most `timeout`; may return early. Works on a read-only
  // mapping.
  static void wait(const Word32& word, std::uint32_t expected,
                   std::chrono::nanoseconds timeout) noexcept;
  // Wakes every waiter on `word` in every process.
  static void wake_all(Word32& word) noexcept;
};

// A load that is wider than the machine's own, or emulated by a compare-exchange, writes: on a page
// mapped read-only it would fault.
static_assert(StdAtomics::Word::is_always_lock_free && sizeof(StdAtomics::Word) == 8);
static_assert(StdAtomics::Word32::is_always_lock_free && sizeof(StdAtomics::Word32) == 4);
static_assert(sizeof(void*) == 8, "the mapped span does not fit a 32-bit address space");

}  // namespace fingerpost
