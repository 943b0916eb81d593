#include "syncer/snapshot_format.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "shm/hash.h"
#include "tests/snapshot_samples.h"

namespace fingerpost {
namespace {

using Bytes = std::vector<std::byte>;

SnapshotHeader sample_header() {
  SnapshotHeader header;
  header.directory_id = sample_directory(4);
  header.incarnation = 5;
  header.cursor = {6, 7};
  header.replay_from = 8;
  header.last_sync_unix_ns = -9;
  header.seed = 0x1234'5678'9ABC'DEF0;
  header.blocks_bytes = 3 * kSnapshotBlockBytes + 1'000;
  header.meta_bytes = 100;
  header.entries = 11;
  header.tombstones = 12;
  return header;
}

Bytes encoded(const SnapshotHeader& header) {
  Bytes bytes(kSnapshotHeaderBytes);
  encode_header(header, bytes);
  return bytes;
}

template <class T>
void poke(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <class T>
Code code_of(const Result<T>& result) {
  return result ? Code::ok : result.status().code();
}

Result<SnapshotHeader> decoded(const Bytes& bytes) {
  std::uint64_t digest = 0;
  return decode_header(bytes, digest);
}

// A header whose digest is right, so that only its fields can be wrong.
Result<SnapshotHeader> decoded_with(std::size_t at, std::uint64_t value) {
  Bytes bytes = encoded(sample_header());
  poke(bytes, at, value);
  poke(bytes, kSnapshotHeaderBytes - 8,
       content_digest(std::span(bytes).first(kSnapshotHeaderBytes - 8)));
  return decoded(bytes);
}

TEST_CASE("the bytes of a header are fixed") {
  const Bytes bytes = encoded(sample_header());
  CHECK(std::memcmp(bytes.data(),
                    "\x89"
                    "FPSNAP\n\2\0\0\0\0\0\0\0",
                    16) == 0);
  CHECK(std::memcmp(bytes.data() + 32, "\5\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0", 24) ==
        0);
  CHECK(bytes[72] == std::byte{0xe8});
  CHECK(content_digest(bytes) == 86'077'131'627'275'469U);
}

TEST_CASE("a header comes back as it went in") {
  const SnapshotHeader header = sample_header();
  std::uint64_t digest = 0;
  const auto back = decode_header(encoded(header), digest);
  REQUIRE(back.ok());
  CHECK(back->directory_id == header.directory_id);
  CHECK(back->incarnation == header.incarnation);
  CHECK(back->cursor == header.cursor);
  CHECK(back->replay_from == header.replay_from);
  CHECK(back->last_sync_unix_ns == header.last_sync_unix_ns);
  CHECK(back->seed == header.seed);
  CHECK(back->blocks() == 4);
  CHECK(back->file_bytes() == 4'096 + 3 * (1 << 20) + 1'000 + 100 + 64);
  CHECK(back->entries == header.entries);
  CHECK(back->tombstones == header.tombstones);
}

TEST_CASE("any flipped bit of a header is noticed") {
  const Bytes good = encoded(sample_header());
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 5) {
    Bytes bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    CAPTURE(bit);
    CHECK_FALSE(decoded(bad).ok());
  }
}

TEST_CASE("a format of the future is named as such") {
  Bytes bytes = encoded(sample_header());
  poke(bytes, 8, std::uint32_t{3});
  const auto header = decoded(bytes);
  REQUIRE_FALSE(header.ok());
  CHECK(header.status().code() == Code::other_layout);
  CHECK(header.status().message() == "is of format 3, this build reads formats 1 to 2");
}

TEST_CASE("the format before split tenants is read, and says what it is") {
  Bytes bytes = encoded(sample_header());
  poke(bytes, 8, std::uint32_t{1});
  poke(bytes, 4'088, content_digest(std::span(bytes).first(4'088)));
  const auto header = decoded(bytes);
  REQUIRE(header.ok());
  CHECK(header->format == 1);
  CHECK(header->parts == 0);
}

TEST_CASE(
    "a split tenant of any number of parts comes back whole, and no other number is believed") {
  const std::string id(kIdBytesMax, 'x');
  for (const std::size_t parts : {std::size_t{2}, std::size_t{kPartsMax}}) {
    Bytes block(kSnapshotBlockBytes);
    BlockBuilder builder(block);
    SnapshotRecord record{RecordKind::split,
                          0,
                          kNoSnapshotShard,
                          kNoSnapshotShard,
                          9,
                          id,
                          0,
                          11,
                          std::vector<SnapshotPart>(parts, {1, 2, kNoSnapshotShard, 7})};
    record.parts.back() = {3, 0, 2, 1ULL << 60};
    REQUIRE(builder.append(record));
    Bytes bytes(block.size());
    const auto sealed = builder.seal(0, true);
    bytes.assign(sealed.begin(), sealed.end());
    auto view = decode_block(bytes, 0, 3);
    REQUIRE(view.ok());
    CHECK(view->parts() == parts);
    SnapshotRecord found;
    REQUIRE(view->next(found));
    CHECK(found.parts == record.parts);
    CHECK(found.read_at == 11);
    CHECK(found.epoch == 9);
    CHECK(found.id == id);
    CHECK(code_of(decode_block(bytes, 0, 2)) == Code::corrupt);
    for (const std::uint32_t wrong : {0U, 1U, static_cast<std::uint32_t>(parts) + 1, 1'025U, ~0U}) {
      CAPTURE(wrong);
      Bytes bad = bytes;
      poke(bad, kSnapshotBlockHeadBytes + 4, wrong);
      poke(bad, 0, content_digest(std::span(bad).subspan(8)));
      CHECK(code_of(decode_block(bad, 0, 3)) == Code::corrupt);
    }
  }
}

TEST_CASE("lengths and counts that no file can have are refused before anybody follows them") {
  REQUIRE(decoded_with(88, 11).ok());
  for (const std::uint64_t hostile : {std::uint64_t{1} << 31, (std::uint64_t{1} << 32) + 1,
                                      std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    CAPTURE(hostile);
    CHECK(code_of(decoded_with(80, hostile)) == Code::corrupt);
    CHECK(code_of(decoded_with(88, hostile)) == Code::corrupt);
    CHECK(code_of(decoded_with(96, hostile)) == Code::corrupt);
  }
  CHECK(code_of(decoded_with(72, std::uint64_t{1} << 63)) == Code::corrupt);
  CHECK(code_of(decoded_with(80, 7)) == Code::corrupt);
  const auto huge = decoded_with(72, (std::uint64_t{1} << 32) + 1);
  REQUIRE(huge.ok());
  CHECK(huge->blocks() == 4'097);
  CHECK(huge->file_bytes() == (std::uint64_t{1} << 32) + 1 + 4'096 + 100 + 64);
}

TEST_CASE("layout and topology come back as they went in") {
  const SnapshotMeta meta = sample_end(5).meta;
  const auto bytes = encode_meta(meta);
  REQUIRE(bytes.ok());
  const auto back = decode_meta(*bytes, meta.layout.directory_id);
  REQUIRE(back.ok());
  CHECK(back->layout == meta.layout);
  CHECK(back->topology == meta.topology);
}

TEST_CASE("meta that was cut, flipped or lied about is refused") {
  const auto good = encode_meta(sample_end(5).meta);
  REQUIRE(good.ok());
  std::mt19937 random(3);
  for (std::size_t size = 0; size < good->size(); ++size) {
    Bytes bytes(good->begin(), good->begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(decode_meta(bytes, {}).ok());
    if (size < 8) continue;
    poke(bytes, 0, content_digest(std::span(bytes).subspan(8)));
    CHECK(code_of(decode_meta(bytes, {})) == Code::corrupt);
  }
  // With a digest that fits, flipped bytes may mean something else, but never more than the bytes
  // hold.
  for (int i = 0; i < 3'000; ++i) {
    Bytes bytes = *good;
    bytes[8 + random() % (bytes.size() - 8)] ^= static_cast<std::byte>(1 + random() % 255);
    CHECK_FALSE(decode_meta(bytes, {}).ok());
    poke(bytes, 0, content_digest(std::span(bytes).subspan(8)));
    const auto meta = decode_meta(bytes, {});
    if (meta) CHECK(meta->topology.size() <= bytes.size());
  }
}

TEST_CASE("a topology beyond the format's bounds is not written") {
  SnapshotMeta meta = sample_end(5).meta;
  meta.topology[1].primary.assign(kShardFieldBytesMax + 1, 'x');
  const auto bytes = encode_meta(meta);
  REQUIRE_FALSE(bytes.ok());
  CHECK(bytes.status().code() == Code::refused);
  CHECK(bytes.status().message() ==
        "snapshot: a shard's primary of 1025 bytes is longer than 1024");
}

Bytes sample_block(std::uint64_t ordinal, bool last, std::uint32_t* records = nullptr) {
  Bytes block(kSnapshotBlockBytes);
  BlockBuilder builder(block);
  for (std::uint64_t number = 0; number < (last ? 50 : 1'000'000); ++number) {
    const std::string id = sample_id(number);
    if (!builder.append(sample_record(number, id))) break;
  }
  if (records != nullptr) *records = builder.records();
  block.resize(builder.seal(ordinal, last).size());
  return block;
}

TEST_CASE("a block gives back its records, and only at its own place") {
  std::uint32_t records = 0;
  const Bytes full = sample_block(3, false, &records);
  CHECK(full.size() == kSnapshotBlockBytes);
  auto view = decode_block(full, 3, 3);
  REQUIRE(view.ok());
  CHECK(view->records() == records);
  CHECK(view->tombstones() == (records + 10) / 11);
  SnapshotRecord found;
  std::uint64_t number = 0;
  for (; view->next(found); ++number) {
    const std::string id = sample_id(number);
    const SnapshotRecord wanted = sample_record(number, id);
    REQUIRE(found.id == wanted.id);
    REQUIRE(found.epoch == wanted.epoch);
    REQUIRE(found.bucket == wanted.bucket);
    REQUIRE(found.parts == wanted.parts);
  }
  CHECK(number == records);
  CHECK(code_of(decode_block(full, 2, 3)) == Code::corrupt);
  CHECK(code_of(decode_block(full, 3, 2)) == Code::corrupt);
}

TEST_CASE("ids of every length fit, the longest among them") {
  Bytes block(kSnapshotBlockBytes);
  BlockBuilder builder(block);
  const std::string id(kSnapshotIdBytesMax, 'x');
  SnapshotRecord record;
  for (std::size_t size = 1; size <= id.size(); ++size) {
    record.id = std::string_view(id).substr(0, size);
    REQUIRE(builder.append(record));
  }
  auto view = decode_block(builder.seal(0, true), 0, 0);
  REQUIRE(view.ok());
  for (std::size_t size = 1; size <= id.size(); ++size) {
    REQUIRE(view->next(record));
    CHECK(record.id.size() == size);
  }
}

TEST_CASE("a block with a fitting digest and senseless records is refused, never followed") {
  const Bytes good = sample_block(0, true);
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes bytes = good;
    for (int n = 0; n < 3; ++n)
      bytes[8 + random() % (bytes.size() - 8)] = static_cast<std::byte>(random());
    poke(bytes, 0, content_digest(std::span(bytes).subspan(8)));
    auto view = decode_block(bytes, 0, 3);
    if (!view) {
      ++refused;
      continue;
    }
    SnapshotRecord record;
    while (view->next(record)) {
      REQUIRE(record.id.size() <= kSnapshotIdBytesMax);
      REQUIRE((record.shard < 3 || record.shard == kNoSnapshotShard));
      REQUIRE(record.parts.size() <= kPartsMax);
    }
  }
  CHECK(refused > 1'000);
}

}  // namespace
}  // namespace fingerpost
