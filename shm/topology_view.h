// The segment's shards, as readers see them. Any number of threads; no system call; every step
// bounded.
#pragma once

#include <cstdint>

#include "shm/layout.h"
#include "shm/topology_record.h"

namespace fingerpost {

template <class A>
class TopologyView {
 public:
  TopologyView() noexcept = default;
  // `region` is the topology region of `bytes` bytes, all of it allocated.
  TopologyView(const std::byte* region, std::uint64_t bytes) noexcept
      : header_(reinterpret_cast<const TopologyHeader<A>*>(region)),
        index_(reinterpret_cast<const typename A::Word*>(region + sizeof(TopologyHeader<A>))),
        words_((bytes - sizeof(TopologyHeader<A>)) / kWordBytes) {}

  // Indexes ever given out; bounded by the region.
  std::uint64_t shard_count() const noexcept {
    const std::uint64_t count = header_->shard_count.load(kAcquire);  // pairs: shard-count
    return count < index_words() ? count : index_words();
  }

  // The current record of shard `index`; a view without a shard if it was never named. A shard that
  // the directory has removed keeps its last record: `is_removed` tells.
  ShardView shard(std::uint64_t index) const noexcept {
    if (index >= index_words()) return {};
    const std::uint64_t word =
        index_[index].load(kAcquire) & ~kShardRemovedBit;  // pairs: shard-index
    const std::uint64_t arena = arena_words();
    if (word == 0 || word > arena) return {};
    const auto* record =
        reinterpret_cast<const std::uint64_t*>(index_ + index_words()) + (word - 1);
    return ShardView::parse({record, arena - (word - 1)});
  }

  bool is_removed(std::uint64_t index) const noexcept {
    return index < index_words() &&
           (index_[index].load(kAcquire) & kShardRemovedBit) != 0;  // pairs: shard-index
  }

 private:
  // Both lengths are written once, before the segment is complete.
  std::uint64_t index_words() const noexcept {
    const std::uint64_t count = header_->index_words.load(kAcquire);  // pairs: topology-size
    return count < words_ ? count : words_;
  }
  std::uint64_t arena_words() const noexcept {
    const std::uint64_t count = header_->arena_words.load(kAcquire);  // pairs: topology-size
    const std::uint64_t rest = words_ - index_words();
    return count < rest ? count : rest;
  }

  const TopologyHeader<A>* header_ = nullptr;
  const typename A::Word* index_ = nullptr;
  std::uint64_t words_ = 0;  // of the region behind its header
};

}  // namespace fingerpost
