// What a directory entry says of its owner, as values.
#pragma once

#include <cstdint>
#include <string_view>

namespace fingerpost {

enum class State : std::uint8_t {
  none = 0,
  active = 1,
  migrating = 2,
  frozen = 3,        // writes refused for the moment of a flip
  deleted = 4,       // known to be gone; never falls through to a bucket
  unrecognised = 5,  // written by a newer version of the directory; resolves, but is not writable
  split = 6,         // no row's: a tenant in parts, each of which has a state of its own
};

// The directory's word for a state ("" for none and split), and back. Anything unknown is
// `unrecognised`.
std::string_view to_string(State state) noexcept;
State parse_state(std::string_view text) noexcept;

// Which rule gave an answer.
enum class RouteSource : std::uint8_t {
  none = 0,
  override_entry = 1,
  bucket = 2,
  part = 3,
  hash = 4
};

// "override", "bucket", "part", "hash", or "" for none.
std::string_view to_string(RouteSource source) noexcept;

inline constexpr std::uint16_t kNoShard = 0xFFFF;
inline constexpr std::uint32_t kShardsMax = 0xFFFF;  // indexes 0 to 65,534

struct RouteFields {
  constexpr RouteFields() noexcept = default;
  constexpr RouteFields(State state_is, std::uint16_t shard_index, std::uint16_t target_index,
                        std::uint64_t changed_at) noexcept
      : state(state_is), shard(shard_index), target(target_index), epoch(changed_at) {}

  State state = State::none;
  std::uint16_t shard = kNoShard;   // index into the segment's topology; none of a split tenant
  std::uint16_t target = kNoShard;  // set only while MIGRATING
  std::uint16_t parts = 0;  // of a split tenant, and of a part of one: how many parts there are
  std::uint64_t epoch = 0;

  bool operator==(const RouteFields&) const = default;
};
static_assert(sizeof(RouteFields) == 16);  // two registers

}  // namespace fingerpost
