// The bytes of layout 1. Offsets and words here are numbers on purpose: they must not follow the
// code. Whoever changes one makes a new layout (shm/LAYOUT.md, version history).
#include "shm/layout.h"

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "shm/segment_header.h"
#include "shm/segment_writer.h"
#include "tests/segment_buffer.h"

using namespace fingerpost;

namespace {

constexpr std::uint64_t kControl = 4'096;
constexpr std::uint64_t kTopology = 8'192;
constexpr std::uint64_t kHalfA = 2'097'152;
constexpr std::uint64_t kHalfBytes = 10'485'760;
constexpr std::uint64_t kHalfB = kHalfA + kHalfBytes;
constexpr std::uint64_t kUnknownTime = 0x8000'0000'0000'0000;

// A segment with something in every part, as any build of layout 1 must write it.
class Golden {
 public:
  Golden() : buffer_(1'000) {
    SegmentIdentity identity;
    for (std::size_t i = 0; i < 16; ++i) {
      identity.directory_id[i] = static_cast<std::uint8_t>(0x10 + i);
      identity.boot_id[i] = static_cast<std::uint8_t>(0xA0 + i);
    }
    identity.plan = buffer_.plan();
    write_header(buffer_.writable().header(), identity);
    auto writer = SegmentWriter<StdAtomics>::initialise(buffer_.writable(), buffer_.reserve());
    ShardSpec shard;
    shard.name = "s1";
    shard.primary = "db:1";
    REQUIRE(writer.publish_topology({shard}).ok());
    REQUIRE(writer.begin_load({10, 16, FallbackKind::buckets, 3}, 42, 7, false).ok());
    REQUIRE(writer.load("acme", {State::active, 0, kNoShard, 5}) == Applied::changed);
    REQUIRE(writer.load(std::string(50, 'x'), {State::migrating, 0, 1, 6}) == Applied::changed);
    REQUIRE(writer.load_fallback(2, {State::active, 0, kNoShard, 4}) == Applied::changed);
    writer.switch_generation();
    writer.publish({7, 6, 99, 0});
    writer.set(Counter::quarantined, 3);
    store_complete(buffer_.writable().header());
  }

  std::uint64_t word(std::uint64_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, buffer_.base() + offset, 8);
    return value;
  }
  std::uint32_t half_word(std::uint64_t offset) {
    std::uint32_t value = 0;
    std::memcpy(&value, buffer_.base() + offset, 4);
    return value;
  }
  std::string text(std::uint64_t offset, std::size_t length) {
    return {reinterpret_cast<const char*>(buffer_.base()) + offset, length};
  }

 private:
  SegmentBuffer buffer_;
};

}  // namespace

TEST_CASE("the file header lies where layout 1 says") {
  Golden file;
  CHECK(file.text(0, 8) == "FNGRPOST");
  CHECK(file.word(8) == 1);
  CHECK(file.word(16) == 0x0002'0019'4040'0801);
  CHECK(file.word(24) == 0);
  CHECK(file.word(32) == 0x1716'1514'1312'1110);
  CHECK(file.word(40) == 0x1F1E'1D1C'1B1A'1918);
  CHECK(file.word(48) == 0xA7A6'A5A4'A3A2'A1A0);
  CHECK(file.word(56) == 0xAFAE'ADAC'ABAA'A9A8);
  CHECK(file.word(64) == kHalfB + kHalfBytes);
  CHECK(file.word(72) == 1'000);
  CHECK(file.word(80) == kControl);
  CHECK(file.word(88) == kTopology);
  CHECK(file.word(96) == kHalfA - kTopology);
  CHECK(file.word(104) == kHalfA);
  CHECK(file.word(112) == 0);
  CHECK(file.word(120) == kHalfA);
  CHECK(file.word(128) == kHalfB);
  CHECK(file.word(136) == kHalfBytes);
  for (std::uint64_t at = 144; at < 248; at += 8) CHECK(file.word(at) == 0);
  CHECK(file.text(248, 8) == "COMPLETE");
}

TEST_CASE("the control block lies where layout 1 says") {
  Golden file;
  CHECK(file.word(kControl + 0) == 0b10);       // generation 1, half 0
  CHECK(file.word(kControl + 8) == 2'097'152);  // allocated of half A
  CHECK(file.word(kControl + 16) == 0);         // and of half B
  CHECK(file.word(kControl + 64) == kUnknownTime);
  CHECK(file.word(kControl + 72) == kUnknownTime);
  CHECK(file.word(kControl + 112) == kUnknownTime);
  CHECK(file.word(kControl + 128) == 1);  // position: the second copy is current
  CHECK(file.word(kControl + 168) == 7);
  CHECK(file.word(kControl + 176) == 6);
  CHECK(file.word(kControl + 184) == 99);
  CHECK(file.word(kControl + 192) == 0);
  CHECK(file.half_word(kControl + 256) == 2);  // version wait: the switch and the batch
  CHECK(file.half_word(kControl + 320) == 2);  // placement waits 0 …
  CHECK(file.half_word(kControl + 572) == 2);  // … to 63
  CHECK(file.word(kControl + 576) == 2);       // counters: entries
  CHECK(file.word(kControl + 592) == 3);       // quarantined
  CHECK(file.word(kControl + 1'088) == 0);     // last error
}

TEST_CASE("the topology lies where layout 1 says") {
  Golden file;
  CHECK(file.word(kTopology + 0) == 65'278);   // index words: a quarter
  CHECK(file.word(kTopology + 8) == 195'834);  // arena words
  CHECK(file.word(kTopology + 16) == 5);
  CHECK(file.word(kTopology + 24) == 1);
  CHECK(file.word(kTopology + 64) == 1);  // shard 0: offset 0, plus one
  const std::uint64_t record = kTopology + 64 + 65'278 * 8;
  CHECK(file.word(record) == 5);                           // words
  CHECK(file.word(record + 16) == 0x0000'0064'0000'0000);  // weight 100, no attributes, no replicas
  CHECK(file.text(record + 24, 12) == std::string("\2\0\4\0\0\0s1db:1", 12));
}

TEST_CASE("a generation lies where layout 1 says") {
  Golden file;
  CHECK(file.word(kHalfA + 0) == 42);  // seed
  CHECK(file.word(kHalfA + 8) == 1);   // groups
  CHECK(file.word(kHalfA + 16) == 1);  // probe limit
  CHECK(file.word(kHalfA + 24) == 1);  // buckets
  CHECK(file.word(kHalfA + 32) == 3);
  CHECK(file.word(kHalfA + 40) == 4'116);  // 16 + a quarter + 4,096
  CHECK(file.word(kHalfA + 64) == 1);      // generation
  CHECK(file.word(kHalfA + 72) == 7);      // incarnation
  CHECK(file.word(kHalfA + 80) == 4);      // two tail words and one route record

  constexpr std::uint64_t kGroups = kHalfA + 4'096;
  constexpr std::uint64_t kSlots = kGroups + 64;
  constexpr std::uint64_t kFallback = kSlots + 16 * 64;
  constexpr std::uint64_t kRecords = kFallback + 64;
  CHECK(file.word(kFallback + 0) == 0);
  CHECK(file.word(kFallback + 16) == 0x1000'0000'0000'0004);

  // XXH3-64 with seed 42 of "acme" is 2aea28f482f0ff09, of fifty x 9f0aba8108e83f1f: positions 9
  // and 15, fingerprints F0 and F1.
  CHECK(file.word(kGroups) == 0);
  CHECK(file.word(kGroups + 8) == 0xF100'0000'0000'F000);
  const std::uint64_t acme = kSlots + 9 * 64;
  CHECK(file.word(acme) == 0x1000'0000'0000'0005);
  CHECK(file.word(acme + 8) == (2ULL << 16 | 4ULL << 8));
  CHECK(file.text(acme + 16, 8) == std::string("acme\0\0\0\0", 8));

  const std::uint64_t longer = kSlots + 15 * 64;
  CHECK(file.word(longer) == 0xA000'0000'0000'0002);
  CHECK(file.word(longer + 8) == (2ULL << 16 | 50ULL << 8));
  CHECK(file.text(longer + 16, 40) == std::string(40, 'x'));
  CHECK(file.word(longer + 56) == 0);  // its tail: records from word 0
  CHECK(file.text(kRecords, 16) == std::string(10, 'x') + std::string(6, '\0'));
  CHECK(file.word(kRecords + 16) == 0x0100'0000'0001'0000);
  CHECK(file.word(kRecords + 24) == 6);
}

TEST_CASE(
    "every shared word is naturally aligned, and what different parties write lies on different "
    "lines") {
  using Control = ControlBlock<StdAtomics>;
  CHECK(alignof(StdAtomics::Word) == 8);
  CHECK(alignof(StdAtomics::Word32) == 4);
  CHECK(alignof(Control) == 64);
  CHECK(std::is_standard_layout_v<Control>);
  CHECK(std::is_standard_layout_v<FileHeader<StdAtomics>>);
  CHECK(std::is_standard_layout_v<TableHeader<StdAtomics>>);
  CHECK(std::is_standard_layout_v<Slot<StdAtomics>>);
  const std::size_t lines[] = {offsetof(Control, root),
                               offsetof(Control, heartbeat_ns),
                               offsetof(Control, position),
                               offsetof(Control, version_wait),
                               offsetof(Control, placement_waits),
                               offsetof(Control, counters),
                               offsetof(Control, last_error)};
  for (const std::size_t offset : lines) CHECK(offset % 64 == 0);
  // What a lookup reads of a generation and of the control block shares no line with what a batch
  // writes.
  CHECK(offsetof(Control, root) / 64 != offsetof(Control, heartbeat_ns) / 64);
  CHECK(offsetof(TableHeader<StdAtomics>, records_end) / 64 !=
        offsetof(TableHeader<StdAtomics>, seed) / 64);
  for (const std::uint64_t groups :
       std::initializer_list<std::uint64_t>{1, 2, 3, 4, 5, 1'000'001}) {
    for (const std::uint64_t fallback :
         std::initializer_list<std::uint64_t>{0, 1, 7, 8, 9, 1'000}) {
      const Geometry geometry{groups, fallback, 3};
      CHECK(geometry.groups_at() % 64 == 0);
      CHECK(geometry.slots_at() % 64 == 0);
      CHECK(geometry.fallback_at() % 64 == 0);
      CHECK(geometry.records_at() % 64 == 0);
      CHECK(geometry.slots_at() >= geometry.groups_at() + groups * 16);
      CHECK(geometry.fallback_at() == geometry.slots_at() + groups * 16 * 64);
      CHECK(geometry.records_at() >= geometry.fallback_at() + fallback * 8);
      CHECK(geometry.bytes() == geometry.records_at() + 24);
    }
  }
}

TEST_CASE(
    "the root is one word that tells generation, half and whether the segment is superseded") {
  constexpr std::uint64_t kLast = (std::uint64_t{1} << 62) - 1;
  for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{1}, kLast}) {
    for (const unsigned half : {0U, 1U}) {
      const std::uint64_t root = encode_root(generation, half);
      CHECK(root_generation(root) == generation);
      CHECK(root_half(root) == half);
      CHECK_FALSE(root_superseded(root));
      CHECK(root_superseded(root | kSupersededBit));
      CHECK(root_generation(root | kSupersededBit) == generation);
      CHECK(root_half(root | kSupersededBit) == half);
    }
  }
}
