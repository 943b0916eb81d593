#include "shm/packed_id.h"

#include <doctest/doctest.h>

#include <string>

#include "shm/layout.h"
#include "shm/tenant_id.h"

using namespace fingerpost;

namespace {

using Id = PackedId<StdAtomics>;

// The bytes that the words stand for, in the order in which a slot and its tail hold them.
std::string unpacked(const Id& id) {
  std::string bytes;
  const auto append = [&](std::uint64_t word) {
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  const std::size_t inline_words = id.is_long() ? StdAtomics::kIdWords - 1 : StdAtomics::kIdWords;
  for (std::size_t i = 0; i < inline_words; ++i) append(id.inline_word(i));
  for (std::size_t i = 0; i < id.tail_words(); ++i) append(id.tail_word(i));
  return bytes;
}

std::string id_of(std::size_t length) {
  std::string id;
  for (std::size_t i = 0; i < length; ++i) id += static_cast<char>('!' + i % 90);
  return id;
}

}  // namespace

TEST_CASE("the words of an id of any length hold its bytes, zero-padded, and nothing else") {
  for (std::size_t length = 1; length <= kIdBytesMax; ++length) {
    const std::string text = id_of(length);
    const Id id(text);
    const std::string bytes = unpacked(id);
    CHECK(bytes.substr(0, length) == text);
    CHECK(bytes.find_first_not_of('\0', length) == std::string::npos);
  }
}

TEST_CASE("an id is inline up to 48 bytes, and beyond keeps 40 there and the rest in tail words") {
  CHECK_FALSE(Id(id_of(kInlineIdBytes)).is_long());
  CHECK(Id(id_of(kInlineIdBytes)).tail_words() == 0);
  CHECK(Id(id_of(kInlineIdBytes + 1)).is_long());
  CHECK(Id(id_of(49)).tail_words() == 2);
  CHECK(Id(id_of(56)).tail_words() == 2);
  CHECK(Id(id_of(57)).tail_words() == 3);
  CHECK(Id(id_of(255)).tail_words() == 27);
}

TEST_CASE("reading a padded word never looks past the end of the text") {
  const std::string text = "abcdefghij";
  CHECK(load_padded_word(text, 0) == 0x6867666564636261);
  CHECK(load_padded_word(text, 8) == 0x6A69);
  CHECK(load_padded_word(text, 10) == 0);
  CHECK(load_padded_word(text, 16) == 0);
}
