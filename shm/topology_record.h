// One shard's record in the segment's arena: immutable once an index word names it, so views into
// it stay valid as long as the mapping does. The bytes are plain; the index word orders them.
//
//   word 0   length of the whole record in words (never 0)
//   word 1   XXH3-64 of the rest, so that a record a writer died in is not taken for one
//   word 2   weight 63..32 · attributes 31..16 · replicas 15..0
//   then     the length of each text, 16 bits each: name, primary, region, replicas…, attribute
//   name, value, … then     the texts, one after the other, zero-padded to a word
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "shm/shard_spec.h"
#include "shm/status.h"

namespace fingerpost {

// Refused if a field is too long or a list too large (shm/shard_spec.h says how long); the message
// names it.
Result<std::vector<std::uint64_t>> encode_shard_record(const ShardSpec& spec);

// A validated look at a record. Cheap to copy; every string lies in the mapping.
class ShardView {
 public:
  ShardView() noexcept = default;

  // `words` begins at the record and ends where the arena does. A view without a shard if it makes
  // no sense.
  static ShardView parse(std::span<const std::uint64_t> words) noexcept;

  explicit operator bool() const noexcept { return lengths_ != nullptr; }
  std::string_view name() const noexcept { return text(0); }
  std::string_view primary() const noexcept { return text(1); }
  std::string_view region() const noexcept { return text(2); }
  std::uint32_t weight() const noexcept { return weight_; }
  std::size_t replica_count() const noexcept { return replicas_; }
  std::string_view replica(std::size_t i) const noexcept { return text(3 + i); }
  std::size_t attribute_count() const noexcept { return attributes_; }
  std::pair<std::string_view, std::string_view> attribute(std::size_t i) const noexcept {
    return {text(3 + replicas_ + 2 * i), text(4 + replicas_ + 2 * i)};
  }

 private:
  std::string_view text(std::size_t i) const noexcept;

  const std::uint16_t* lengths_ = nullptr;
  const char* texts_ = nullptr;
  std::uint32_t weight_ = 0;
  std::uint16_t replicas_ = 0;
  std::uint16_t attributes_ = 0;
};

// The record as values again.
ShardSpec to_spec(const ShardView& view);

// Whether the record at the start of `words` is whole: its length fits and its digest is right.
bool is_whole_record(std::span<const std::uint64_t> words) noexcept;

}  // namespace fingerpost
