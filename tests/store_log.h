// Records the shared stores of a writer, in its order, with the memory order of each.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "tests/traced_atomics.h"

namespace fingerpost {

struct LoggedStore {
  std::size_t at = 0;  // byte offset in the region
  std::size_t bytes = 0;
  std::uint64_t value = 0;
  std::memory_order order = std::memory_order_release;
  std::size_t step = 0;  // of the scenario: what the writer was doing
};

inline void apply_store(std::span<std::byte> region, const LoggedStore& store) {
  std::memcpy(region.data() + store.at, &store.value, store.bytes);  // little-endian: low bytes
}

class StoreLog final : public MemoryModel {
 public:
  explicit StoreLog(std::span<std::byte> region) : region_(region) {}

  void begin_step(std::size_t step) { step_ = step; }
  const std::vector<LoggedStore>& stores() const { return stores_; }
  struct Wake {
    std::size_t at;      // the word's offset
    std::size_t stores;  // how many stores came before
  };
  const std::vector<Wake>& wakes() const { return wakes_; }
  // Accesses that were not under the one rule: loads acquire, stores release.
  std::size_t out_of_order() const { return out_of_order_; }

  std::uint64_t load(const void*, std::uint64_t plain, std::memory_order order) override {
    if (order != std::memory_order_acquire) ++out_of_order_;
    return plain;
  }
  bool store(void* word, std::size_t bytes, std::uint64_t value, std::memory_order order) override {
    if (order != std::memory_order_release) ++out_of_order_;
    stores_.push_back({offset(word), bytes, value, order, step_});
    return true;
  }
  void wake(const void* word) override { wakes_.push_back({offset(word), stores_.size()}); }

 private:
  std::size_t offset(const void* word) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(word) - region_.data());
  }

  std::span<std::byte> region_;
  std::vector<LoggedStore> stores_;
  std::vector<Wake> wakes_;
  std::size_t out_of_order_ = 0;
  std::size_t step_ = 0;
};

}  // namespace fingerpost
