#include "shm/group_scan.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <random>

using namespace fingerpost;

namespace {

using Bytes = std::array<std::uint8_t, 16>;

std::uint32_t scan_one_by_one(const Bytes& bytes, std::uint8_t byte) {
  std::uint32_t mask = 0;
  for (unsigned i = 0; i < 16; ++i) mask |= static_cast<std::uint32_t>(bytes[i] == byte) << i;
  return mask;
}

// Whether both forms agree with the plain loop; counted, not checked one by one: there are
// millions.
bool all_agree(const Bytes& bytes, std::uint8_t byte) {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, bytes.data(), 8);
  std::memcpy(&high, bytes.data() + 8, 8);
  const std::uint32_t expected = scan_one_by_one(bytes, byte);
  return scan_portable(low, high, byte) == expected && scan_vector(low, high, byte) == expected;
}

}  // namespace

TEST_CASE("every form finds every byte value at every position among every other value") {
  std::uint64_t wrong = 0;
  for (unsigned position = 0; position < 16; ++position) {
    for (unsigned value = 0; value < 256; ++value) {
      for (unsigned other = 0; other < 256; ++other) {
        Bytes bytes;
        bytes.fill(static_cast<std::uint8_t>(other));
        bytes[position] = static_cast<std::uint8_t>(value);
        wrong += !all_agree(bytes, static_cast<std::uint8_t>(value));
        wrong += !all_agree(bytes, static_cast<std::uint8_t>(value ^ 0x80));
        wrong += !all_agree(bytes, static_cast<std::uint8_t>(value ^ 1));
      }
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE(
    "every form agrees on every pattern of the bytes at the edges, where carries would show") {
  constexpr std::array<std::uint8_t, 4> kEdges = {0x00, 0x01, 0x80, 0xFF};
  constexpr std::array<std::uint8_t, 7> kSought = {0x00, 0x01, 0x7F, 0x80, 0x81, 0xFE, 0xFF};
  std::uint64_t wrong = 0;
  for (unsigned pattern = 0; pattern < 1U << 16; ++pattern) {  // eight positions of four values
    Bytes bytes;
    for (unsigned i = 0; i < 16; ++i) bytes[i] = kEdges[pattern >> (i % 8 * 2) & 3];
    for (const std::uint8_t byte : kSought) wrong += !all_agree(bytes, byte);
  }
  CHECK(wrong == 0);
}

TEST_CASE("every form agrees on a million random groups") {
  std::mt19937_64 random(20'240'601);
  std::uint64_t wrong = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    Bytes bytes;
    const std::array<std::uint64_t, 2> words = {random(), random()};
    std::memcpy(bytes.data(), words.data(), 16);
    wrong += !all_agree(bytes, bytes[static_cast<std::size_t>(i % 16)]);
    wrong += !all_agree(bytes, static_cast<std::uint8_t>(i));
  }
  CHECK(wrong == 0);
}

TEST_CASE("positions come out of a mask from the lowest up") {
  std::uint32_t mask = 0b1000'0000'0001'0010;
  CHECK(pop_lowest(mask) == 1);
  CHECK(pop_lowest(mask) == 4);
  CHECK(pop_lowest(mask) == 15);
  CHECK(mask == 0);
}
