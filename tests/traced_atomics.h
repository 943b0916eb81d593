// The atomics policy of the crash and exploration tests: words of the shipped size and layout whose
// every access goes through a MemoryModel, so that the functions that ship can be recorded, cut,
// counted, interrupted and explored.
//
// One thread. Without a model in force a word is a plain word.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "shm/atomics.h"

namespace fingerpost {

// Who sees the accesses. `plain` is what lies in memory, with no order asked for.
class MemoryModel {
 public:
  virtual ~MemoryModel() = default;
  virtual std::uint64_t load(const void* word, std::uint64_t plain, std::memory_order order) = 0;
  // Called before the value lies in memory; false: it is not to be stored.
  virtual bool store(void* word, std::size_t bytes, std::uint64_t value,
                     std::memory_order order) = 0;
  virtual void wake(const void* /*word*/) {}
};

inline MemoryModel* memory_model = nullptr;

// Puts a model in force for a scope.
class ModelInForce {
 public:
  explicit ModelInForce(MemoryModel* model) : before_(memory_model) { memory_model = model; }
  ~ModelInForce() { memory_model = before_; }
  ModelInForce(const ModelInForce&) = delete;
  ModelInForce& operator=(const ModelInForce&) = delete;

 private:
  MemoryModel* before_;
};

template <class T>
class TracedWord {
 public:
  T load(std::memory_order order) const noexcept {
    return memory_model == nullptr ? value_
                                   : static_cast<T>(memory_model->load(this, value_, order));
  }
  void store(T value, std::memory_order order) noexcept {
    if (memory_model == nullptr || memory_model->store(this, sizeof(T), value, order)) {
      value_ = value;
    }
  }

 private:
  T value_;
};

struct TracedAtomics {
  using Word = TracedWord<std::uint64_t>;
  using Word32 = TracedWord<std::uint32_t>;
  static constexpr std::size_t kIdWords = StdAtomics::kIdWords;

  static void wake_all(Word32& word) noexcept {
    if (memory_model != nullptr) memory_model->wake(&word);
  }
};
static_assert(sizeof(TracedAtomics::Word) == sizeof(StdAtomics::Word));
static_assert(sizeof(TracedAtomics::Word32) == sizeof(StdAtomics::Word32));

}  // namespace fingerpost
