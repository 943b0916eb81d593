// The atomics policy over Relacy (https://github.com/dvyukov/relacy): every access is a point at
// which its scheduler may switch threads, and a load may return older values as the C++ memory
// model allows. Slots hold ids of one word, so that models stay small.
//
// Include this after everything else: Relacy puts macros in the place of the standard's names; the
// ones that are in the way are taken back here.
#pragma once

#include <atomic>
#include <cstdint>
#include <relacy/relacy.hpp>
#undef memory_order_relaxed
#undef memory_order_consume
#undef memory_order_acquire
#undef memory_order_release
#undef memory_order_acq_rel
#undef memory_order_seq_cst
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert

namespace fingerpost {

inline rl::memory_order relacy_order(std::memory_order order) {
  switch (order) {
    case std::memory_order_acquire:
      return rl::mo_acquire;
    case std::memory_order_release:
      return rl::mo_release;
    case std::memory_order_seq_cst:
      return rl::mo_seq_cst;
    default:
      return rl::mo_relaxed;
  }
}

template <class T>
class RelacyWord {
 public:
  T load(std::memory_order order) const { return word_.load(relacy_order(order), RL_INFO); }
  void store(T value, std::memory_order order) { word_.store(value, relacy_order(order), RL_INFO); }

 private:
  rl::atomic<T> word_;
};

// A word that a waiter sleeps on. The kernel compares it and queues the waiter under its own lock,
// and wakes under the same: a mutex and a condition do here what the futex does there.
class RelacyWaitWord {
 public:
  std::uint32_t load(std::memory_order order) const {
    return word_.load(relacy_order(order), RL_INFO);
  }
  void store(std::uint32_t value, std::memory_order order) {
    word_.store(value, relacy_order(order), RL_INFO);
  }
  void wait(std::uint32_t expected) {
    mutex_.lock(RL_INFO);
    if (word_.load(rl::mo_seq_cst, RL_INFO) == expected) queue_.wait(mutex_, RL_INFO);
    mutex_.unlock(RL_INFO);
  }
  void wake_all() {
    mutex_.lock(RL_INFO);
    queue_.notify_all(RL_INFO);
    mutex_.unlock(RL_INFO);
  }

 private:
  rl::atomic<std::uint32_t> word_;
  rl::mutex mutex_;
  rl::condition_variable_any queue_;
};

struct RelacyAtomics {
  using Word = RelacyWord<std::uint64_t>;
  using Word32 = RelacyWaitWord;
  static constexpr std::size_t kIdWords = 1;

  // No timeout: a wake that is lost is a deadlock, which Relacy reports.
  static void wait(Word32& word, std::uint32_t expected) { word.wait(expected); }
  static void wake_all(Word32& word) { word.wake_all(); }
};

}  // namespace fingerpost
