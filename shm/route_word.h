// A route as one 64-bit word, so that ownership changes by one store and cannot tear.
//
//   bit 63      62..60   59..44        43..0
//   record: 0   state    shard index   epoch                       the usual case
//   record: 1   state    0             offset of a RouteRecord     what does not fit: a target, an
//                                                                  epoch of 2^44 or more
//   record: 1   6        0             offset of a split record    a tenant in parts:
//                                                                  shm/split_record.h
//
// The zero word is "no route". A record's offset counts words from the start of its generation's
// records and is never given twice within a generation, so equal words are equal routes: no ABA.
#pragma once

#include <cstdint>

#include "shm/route_fields.h"

namespace fingerpost {

inline constexpr unsigned kEpochBits = 44;
inline constexpr std::uint64_t kEpochInlineMax = (std::uint64_t{1} << kEpochBits) - 1;
inline constexpr std::uint64_t kRecordFlag = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kNoRoute = 0;

constexpr bool has_record(std::uint64_t word) noexcept {
  return (word & kRecordFlag) != 0;
}
constexpr std::uint64_t record_offset(std::uint64_t word) noexcept {
  return word & kEpochInlineMax;
}

constexpr bool fits_inline(const RouteFields& route) noexcept {
  return route.target == kNoShard && route.epoch <= kEpochInlineMax;
}

constexpr std::uint64_t encode_inline(const RouteFields& route) noexcept {
  return static_cast<std::uint64_t>(route.state) << 60 |
         static_cast<std::uint64_t>(route.shard) << kEpochBits | route.epoch;
}

constexpr std::uint64_t encode_record_reference(State state, std::uint64_t offset) noexcept {
  return kRecordFlag | static_cast<std::uint64_t>(state) << 60 | offset;
}

constexpr State state_bits(std::uint64_t word) noexcept {
  const auto bits = static_cast<std::uint8_t>(word >> 60 & 7);
  return bits <= static_cast<std::uint8_t>(State::unrecognised) ? static_cast<State>(bits)
                                                                : State::unrecognised;
}

constexpr RouteFields decode_inline(std::uint64_t word) noexcept {
  return {state_bits(word), static_cast<std::uint16_t>(word >> kEpochBits), kNoShard,
          word & kEpochInlineMax};
}

// A RouteRecord is two words, immutable once a route word names it.
//   word 0: kind 63..56 (1: route; 2: shm/split_record.h) · target 31..16 · shard 15..0
//   word 1: epoch
inline constexpr std::uint64_t kRouteRecordKind = 1;
inline constexpr std::uint64_t kRouteRecordWords = 2;

constexpr std::uint64_t encode_record_head(const RouteFields& route) noexcept {
  return kRouteRecordKind << 56 | static_cast<std::uint64_t>(route.target) << 16 | route.shard;
}

constexpr std::uint64_t record_kind(std::uint64_t head) noexcept {
  return head >> 56;
}

constexpr RouteFields decode_record(std::uint64_t word, std::uint64_t head,
                                    std::uint64_t epoch) noexcept {
  return {state_bits(word), static_cast<std::uint16_t>(head),
          static_cast<std::uint16_t>(head >> 16), epoch};
}

}  // namespace fingerpost
