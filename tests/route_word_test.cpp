#include "shm/route_word.h"

#include <doctest/doctest.h>

#include <array>

using namespace fingerpost;

namespace {

constexpr std::array kStates = {State::active, State::migrating, State::frozen, State::deleted,
                                State::unrecognised};
constexpr std::array<std::uint16_t, 5> kShards = {0, 1, 0x7FFF, 0xFFFE, kNoShard};
constexpr std::array<std::uint64_t, 5> kInlineEpochs = {0, 1, 1ULL << 32, kEpochInlineMax - 1,
                                                        kEpochInlineMax};

RouteFields through_word(const RouteFields& route, std::uint64_t offset) {
  if (fits_inline(route)) return decode_inline(encode_inline(route));
  const std::uint64_t head = encode_record_head(route);
  CHECK(record_kind(head) == kRouteRecordKind);
  const std::uint64_t word = encode_record_reference(route.state, offset);
  CHECK(has_record(word));
  CHECK(record_offset(word) == offset);
  return decode_record(word, head, route.epoch);
}

}  // namespace

TEST_CASE("a route comes back from its word as it went in, at every edge of every field") {
  for (const State state : kStates) {
    for (const std::uint16_t shard : kShards) {
      for (const std::uint16_t target : kShards) {
        for (const std::uint64_t epoch : kInlineEpochs) {
          const RouteFields route{state, shard, target, epoch};
          CHECK(through_word(route, kEpochInlineMax) == route);
        }
        for (const std::uint64_t epoch : {kEpochInlineMax + 1, ~std::uint64_t{0}}) {
          const RouteFields route{state, shard, target, epoch};
          CHECK_FALSE(fits_inline(route));
          CHECK(through_word(route, 0) == route);
        }
      }
    }
  }
}

TEST_CASE("no route with a state is the word that means no route") {
  for (const State state : kStates) {
    CHECK(encode_inline({state, 0, kNoShard, 0}) != kNoRoute);
    CHECK(encode_record_reference(state, 0) != kNoRoute);
  }
  CHECK(decode_inline(kNoRoute).state == State::none);
}

TEST_CASE("what needs more than 44 bits of epoch, or a target, goes to a record") {
  CHECK(fits_inline({State::active, 3, kNoShard, kEpochInlineMax}));
  CHECK_FALSE(fits_inline({State::active, 3, kNoShard, kEpochInlineMax + 1}));
  CHECK_FALSE(fits_inline({State::migrating, 3, 4, 7}));
}

TEST_CASE("the words are what shm/LAYOUT.md draws") {
  CHECK(encode_inline({State::active, 5, kNoShard, 7}) == 0x1000'5000'0000'0007);
  CHECK(encode_inline({State::frozen, 0xFFFE, kNoShard, 0xABC}) == 0x3FFF'E000'0000'0ABC);
  CHECK(encode_record_reference(State::migrating, 0x1234) == 0xA000'0000'0000'1234);
  CHECK(encode_record_head({State::migrating, 2, 9, 7}) == 0x0100'0000'0009'0002);
}

TEST_CASE("a state that this build does not know resolves as unrecognised") {
  for (std::uint64_t bits = 6; bits <= 7; ++bits)
    CHECK(state_bits(bits << 60) == State::unrecognised);
}
