// The writer's side of the topology. Records are interned: the same content is one record, however
// often a shard fails over and back. A record is written whole before its index word; a shard's
// index is never given to another shard.
//
// One thread of one process.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "shm/layout.h"
#include "shm/route_fields.h"
#include "shm/status.h"
#include "shm/topology_record.h"

namespace fingerpost {

template <class A>
class TopologyWriter {
 public:
  // An empty topology in `region`, which is zero.
  static TopologyWriter initialise(std::byte* region, std::uint64_t bytes) {
    TopologyWriter writer(region);
    const std::uint64_t words = (bytes - sizeof(TopologyHeader<A>)) / kWordBytes;
    const std::uint64_t index = std::min<std::uint64_t>(kShardsMax, words / 4);
    writer.header_->index_words.store(index, kRelease);          // pairs: topology-size
    writer.header_->arena_words.store(words - index, kRelease);  // pairs: topology-size
    writer.load_sizes();
    writer.arena_ = writer.index_ + index;
    return writer;
  }

  // What an earlier writer left: names and interned records are found again; a record it died in is
  // not. corrupt if the lengths do not fit into the region of `bytes` bytes.
  static Result<TopologyWriter> adopt(std::byte* region, std::uint64_t bytes) {
    TopologyWriter writer(region);
    writer.load_sizes();
    writer.arena_end_ = writer.header_->arena_end.load(kAcquire);  // pairs: arena-end
    const std::uint64_t words = (bytes - sizeof(TopologyHeader<A>)) / kWordBytes;
    if (writer.index_words_ > kShardsMax || writer.index_words_ > words ||
        writer.arena_words_ > words - writer.index_words_ ||
        writer.arena_end_ > writer.arena_words_) {
      return Status(Code::corrupt,
                    "the topology's lengths make no sense: " + std::to_string(writer.index_words_) +
                        " indexes, " + std::to_string(writer.arena_end_) + " of " +
                        std::to_string(writer.arena_words_) + " arena words in a region of " +
                        std::to_string(bytes) + " bytes");
    }
    writer.arena_ = writer.index_ + writer.index_words_;
    for (std::uint64_t at = 0; at < writer.arena_end_;) {
      const auto rest = writer.plain_words().subspan(at);
      if (!is_whole_record(rest)) {
        ++at;  // a gap: never written, or not to its end
        continue;
      }
      writer.interned_.emplace(content(rest.first(rest[0])), at);
      at += rest[0];
    }
    const std::uint64_t shards =
        std::min(writer.header_->shard_count.load(kAcquire), writer.index_words_);
    for (std::uint64_t i = 0; i < shards; ++i) {
      const std::uint64_t word = writer.index_[i].load(kAcquire) & ~kShardRemovedBit;
      const ShardView view = word == 0 || word > writer.arena_words_
                                 ? ShardView{}
                                 : ShardView::parse(writer.plain_words().subspan(word - 1));
      if (word != 0 && (!view || view.name().empty())) {
        return Status(Code::corrupt, "shard index " + std::to_string(i) + " names arena word " +
                                         std::to_string(word - 1) + ", where no shard's record is");
      }
      writer.names_.emplace_back(view.name());
      if (view) writer.indexes_.emplace(std::string(view.name()), static_cast<std::uint16_t>(i));
    }
    return writer;
  }

  // Makes the topology what `shards` says; shards that are missing are marked removed. no_space if
  // the arena or the index is full: the shards in front of the one that did not fit are published,
  // the rest is as it was.
  Status publish(const std::vector<ShardSpec>& shards) {
    std::vector<bool> present(names_.size(), false);
    for (const ShardSpec& spec : shards) {
      const auto known = indexes_.find(spec.name);
      if (known != indexes_.end()) present[known->second] = true;
    }
    if (Status status = add(shards); !status.ok()) return status;
    for (std::size_t i = 0; i < present.size(); ++i) {
      const std::uint64_t word = index_[i].load(kAcquire);
      if (!present[i] && word != 0) store_index(i, word | kShardRemovedBit);
    }
    return {};
  }

  // Publishes `shards` and leaves all others as they are; no_space as above.
  Status add(const std::vector<ShardSpec>& shards) {
    for (const ShardSpec& spec : shards) {
      const auto record = encode_shard_record(spec);
      if (!record.ok()) return record.status();
      const auto at = intern(*record);
      if (!at) return full(spec.name);
      const auto index = index_for(spec.name);
      if (!index) return full(spec.name);
      store_index(*index, *at + 1);
    }
    return {};
  }

  // The index of the shard of that name; kNoShard if this topology never had it.
  std::uint16_t index_of(const std::string& name) const {
    const auto found = indexes_.find(name);
    return found == indexes_.end() ? kNoShard : found->second;
  }
  bool is_removed(std::uint16_t index) const {
    return index < names_.size() && (index_[index].load(kAcquire) & kShardRemovedBit) != 0;
  }
  const std::vector<std::string>& names() const { return names_; }
  std::uint64_t used_words() const { return arena_end_; }
  std::uint64_t arena_words() const { return arena_words_; }

 private:
  explicit TopologyWriter(std::byte* region)
      : header_(reinterpret_cast<TopologyHeader<A>*>(region)),
        index_(reinterpret_cast<typename A::Word*>(region + sizeof(TopologyHeader<A>))) {}

  void load_sizes() {
    index_words_ = header_->index_words.load(kAcquire);
    arena_words_ = header_->arena_words.load(kAcquire);
  }
  std::span<const std::uint64_t> plain_words() const {
    return {reinterpret_cast<const std::uint64_t*>(arena_), arena_words_};
  }
  static std::string content(std::span<const std::uint64_t> record) {
    return {reinterpret_cast<const char*>(record.data()), record.size_bytes()};
  }

  // The offset of a record with this content, written now if there is none.
  std::optional<std::uint64_t> intern(const std::vector<std::uint64_t>& record) {
    const auto [known, is_new] = interned_.try_emplace(content(record), arena_end_);
    if (!is_new) return known->second;
    if (arena_words_ - arena_end_ < record.size()) {
      interned_.erase(known);
      return std::nullopt;
    }
    const std::uint64_t at = arena_end_;
    arena_end_ += record.size();
    header_->arena_end.store(arena_end_, kRelease);  // pairs: arena-end
    for (std::size_t i = 0; i < record.size(); ++i) {
      arena_[at + i].store(record[i], kRelease);  // pairs: shard-index
    }
    return at;
  }

  std::optional<std::uint16_t> index_for(const std::string& name) {
    const auto known = indexes_.find(name);
    if (known != indexes_.end()) return known->second;
    if (names_.size() >= index_words_) return std::nullopt;
    const auto index = static_cast<std::uint16_t>(names_.size());
    names_.push_back(name);
    indexes_.emplace(name, index);
    return index;
  }

  void store_index(std::uint64_t index, std::uint64_t word) {
    if (index_[index].load(kAcquire) != word)
      index_[index].store(word, kRelease);  // pairs: shard-index
    if (header_->shard_count.load(kAcquire) <= index) {
      header_->shard_count.store(index + 1, kRelease);  // pairs: shard-count
    }
  }

  Status full(const std::string& name) const {
    return {Code::no_space, "no topology space for shard '" + name +
                                "': " + std::to_string(arena_end_ * kWordBytes) + " of " +
                                std::to_string(arena_words_ * kWordBytes) + " bytes and " +
                                std::to_string(names_.size()) + " of " +
                                std::to_string(index_words_) + " indexes are used"};
  }

  TopologyHeader<A>* header_;
  typename A::Word* index_;
  typename A::Word* arena_ = nullptr;
  std::uint64_t index_words_ = 0;
  std::uint64_t arena_words_ = 0;
  std::uint64_t arena_end_ = 0;
  std::vector<std::string> names_;  // by index
  std::unordered_map<std::string, std::uint16_t> indexes_;
  std::unordered_map<std::string, std::uint64_t> interned_;  // record bytes → offset
};

}  // namespace fingerpost
