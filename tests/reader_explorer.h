// Lets a reader see every mixture of one writer's stores that the C++ memory model allows.
//
// One writer, which takes nothing from the readers, and a reader, which stores nothing: then the
// writer may as well run first, and an execution is which of its stores each of the reader's loads
// reads from. A load may read any store to its word that is not hidden: not older than what the
// reader has read of that word, nor than the last one that happened before. An acquire load of a
// release store makes everything the writer did up to that store happen before what the reader does
// next; any other pair does not. This is all of the C++ (RC11) rules that such a pair of threads
// can meet, for acquire, release and relaxed; fences and read-modify-writes are refused by the
// policy, which has none. Readers do not meet each other, so one at a time is all of them.
//
// Plain reads (the words of a topology record) get what must have happened before, and no more: the
// bytes lie in the region as after the last store that the reader is known to have seen.
//
// Depth-first over the choices, without any bound. What follows a state that was reached before
// (the same knowledge, at the same place of the reader's program) is not run again: `checkpoint`.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tests/store_log.h"

namespace fingerpost {

class ReaderExplorer final : public MemoryModel {
 public:
  // `region` holds the bytes before the first of `stores`, and does so again afterwards.
  ReaderExplorer(std::span<std::byte> region, const std::vector<LoggedStore>& stores)
      : region_(region), stores_(stores), list_of_(region.size() / kUnit, kNoList) {
    for (std::size_t time = 1; time <= stores.size(); ++time) {
      const std::size_t unit = stores[time - 1].at / kUnit;
      if (list_of_[unit] == kNoList) {
        list_of_[unit] = static_cast<std::uint32_t>(words_.size());
        words_.push_back({{0}, {load_plain(stores[time - 1])}});
      }
      words_[list_of_[unit]].times.push_back(time);
      words_[list_of_[unit]].values.push_back(stores[time - 1].value);
    }
    for (const Word& word : words_) undo_.push_back(word.values.front());
  }

  // Runs `read` once for each execution; until it returns false. Returns how many there were.
  std::uint64_t explore(const std::function<bool()>& read) {
    const ModelInForce exploring(this);
    std::uint64_t executions = 0;
    choices_.clear();
    reached_.clear();
    do {
      begin_execution();
      ++executions;
      if (!read()) break;
    } while (next_path());
    rewind();
    return executions;
  }

  std::uint64_t load(const void* word, std::uint64_t plain, std::memory_order order) override {
    const std::size_t unit = offset(word) / kUnit;
    if (list_of_[unit] == kNoList) return last_loaded_ = plain;
    const std::uint32_t list = list_of_[unit];
    const Word& history = words_[list];
    const std::size_t bound = std::max(known_, seen_[list]);
    const auto after = std::upper_bound(history.times.begin(), history.times.end(), bound);
    const auto first = static_cast<std::size_t>(after - history.times.begin()) - 1;
    const std::size_t chosen = first + choose(history.times.size() - first);
    const std::size_t time = history.times[chosen];
    seen_[list] = std::max(seen_[list], time);
    if (time != 0 && is_acquire(order) && is_release(stores_[time - 1].order)) learn(time);
    return last_loaded_ = history.values[chosen];
  }
  bool store(void*, std::size_t, std::uint64_t, std::memory_order) override {
    reader_stored_ = true;
    return false;
  }
  bool reader_stored() const { return reader_stored_; }

  // The reader's whole state at this place is `local` and what it has seen. Where another path has
  // led here, the rest of this run makes no more choices and counts for nothing: `is_pruned`.
  void checkpoint(std::vector<std::uint64_t> local) {
    if (pruned_) return;
    std::vector<std::uint64_t> state = std::move(local);
    state.push_back(known_);
    for (std::size_t list = 0; list < seen_.size(); ++list) {
      if (seen_[list] <= known_) continue;
      state.push_back(list);
      state.push_back(seen_[list]);
    }
    std::vector<std::uint32_t> path;
    for (std::size_t i = 0; i < depth_; ++i) path.push_back(choices_[i].taken);
    const auto [reached, is_new] = reached_.try_emplace(std::move(state), path);
    pruned_ = !is_new && reached->second != path;
  }
  std::uint64_t last_loaded() const { return last_loaded_; }
  bool is_pruned() const { return pruned_; }

 private:
  static constexpr std::size_t kUnit = 4;  // the narrowest word
  static constexpr std::uint32_t kNoList = ~std::uint32_t{0};
  struct Word {
    std::vector<std::size_t> times;  // 0: what lay there before the first store
    std::vector<std::uint64_t> values;
  };
  struct Choice {
    std::uint32_t taken;
    std::uint32_t count;
  };

  static bool is_acquire(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_seq_cst;
  }
  static bool is_release(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_seq_cst;
  }
  std::size_t offset(const void* word) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(word) - region_.data());
  }
  std::uint64_t load_plain(const LoggedStore& store) const {
    std::uint64_t value = 0;
    std::memcpy(&value, region_.data() + store.at, store.bytes);
    return value;
  }

  void begin_execution() {
    rewind();
    known_ = 0;
    seen_.assign(words_.size(), 0);
    depth_ = 0;
    pruned_ = false;
  }
  void rewind() {
    for (std::size_t i = 0; i < known_; ++i) {
      LoggedStore back = stores_[i];
      back.value = undo_[list_of_[back.at / kUnit]];
      apply_store(region_, back);
    }
  }
  void learn(std::size_t time) {
    for (; known_ < time; ++known_) apply_store(region_, stores_[known_]);
  }
  std::uint32_t choose(std::size_t count) {
    if (count == 1) return 0;
    if (pruned_) return static_cast<std::uint32_t>(count - 1);  // the newest: ends soonest
    if (depth_ == choices_.size()) choices_.push_back({0, static_cast<std::uint32_t>(count)});
    return choices_[depth_++].taken;
  }
  bool next_path() {
    choices_.resize(depth_);
    while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) {
      choices_.pop_back();
    }
    if (choices_.empty()) return false;
    ++choices_.back().taken;
    return true;
  }

  std::span<std::byte> region_;
  const std::vector<LoggedStore>& stores_;
  std::vector<std::uint32_t> list_of_;  // by unit of the region
  std::vector<Word> words_;
  std::vector<std::uint64_t> undo_;
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  std::size_t known_ = 0;          // stores that happened before what the reader does next
  std::vector<std::size_t> seen_;  // by word: the time of the last store read
  // State at a checkpoint → the choices of the path that reached it first.
  std::map<std::vector<std::uint64_t>, std::vector<std::uint32_t>> reached_;
  bool pruned_ = false;
  std::uint64_t last_loaded_ = 0;
  bool reader_stored_ = false;
};

}  // namespace fingerpost
