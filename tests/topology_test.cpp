#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <set>

#include "shm/topology_view.h"
#include "shm/topology_writer.h"

using namespace fingerpost;

namespace {

using Writer = TopologyWriter<StdAtomics>;
using View = TopologyView<StdAtomics>;

// A topology region of exactly its size, so that a sanitizer sees every step outside.
class Region {
 public:
  explicit Region(std::uint64_t bytes)
      : size(bytes), bytes_(static_cast<std::byte*>(std::aligned_alloc(kLineBytes, bytes))) {
    std::memset(bytes_.get(), 0, bytes);
  }
  std::byte* data() { return bytes_.get(); }
  View view() const { return {bytes_.get(), size}; }
  TopologyHeader<StdAtomics>& header() {
    return *reinterpret_cast<TopologyHeader<StdAtomics>*>(data());
  }

  const std::uint64_t size;

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> bytes_;
};

ShardSpec shard(const std::string& name, const std::string& primary = "10.0.0.1:5432") {
  ShardSpec spec;
  spec.name = name;
  spec.primary = primary;
  return spec;
}

ShardSpec rich_shard(const std::string& name, std::size_t size) {
  ShardSpec spec = shard(name, name + ".primary:5432");
  spec.region = "eu-west-1";
  spec.weight = static_cast<std::uint32_t>(size);
  for (std::size_t i = 0; i < size; ++i) {
    spec.replicas.push_back("replica-" + std::to_string(i) + std::string(i, 'r'));
    spec.attributes.emplace_back("attribute-" + std::to_string(10 + i), std::string(3 * i, 'v'));
  }
  return spec;
}

Writer adopted(Region& region) {
  auto writer = Writer::adopt(region.data(), region.size);
  REQUIRE_MESSAGE(writer.ok(), writer.status().message());
  return std::move(*writer);
}

// Reads everything a reader can; the sum only keeps it from being left out.
std::uint64_t read_all(const View& view) {
  std::uint64_t sum = view.shard_count();
  for (std::uint64_t i = 0; i < 70'000; ++i) {
    const ShardView shard = view.shard(i);
    sum += view.is_removed(i);
    if (!shard) continue;
    for (const std::string_view text : {shard.name(), shard.primary(), shard.region()})
      for (const char c : text) sum += static_cast<unsigned char>(c);
    for (std::size_t k = 0; k < shard.replica_count(); ++k)
      for (const char c : shard.replica(k)) sum += static_cast<unsigned char>(c);
    for (std::size_t k = 0; k < shard.attribute_count(); ++k) {
      sum += shard.attribute(k).first.size();
      for (const char c : shard.attribute(k).second) sum += static_cast<unsigned char>(c);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("readers see a shard's record as the directory says it") {
  Region region(16'384);
  Writer writer = Writer::initialise(region.data(), region.size);
  CHECK(region.view().shard_count() == 0);
  CHECK_FALSE(region.view().shard(0));
  const std::vector<ShardSpec> shards = {rich_shard("a", 3), shard("b", ""), rich_shard("c", 0)};
  REQUIRE(writer.publish(shards).ok());
  CHECK(region.view().shard_count() == 3);
  for (const ShardSpec& spec : shards) {
    const std::uint16_t index = writer.index_of(spec.name);
    CHECK(to_spec(region.view().shard(index)) == spec);
    CHECK_FALSE(region.view().is_removed(index));
  }
  CHECK_FALSE(region.view().shard(3));
  CHECK_FALSE(region.view().shard(kNoShard));
  CHECK(writer.index_of("d") == kNoShard);
}

TEST_CASE("a million failovers among a few records use the space of those records") {
  Region region(65'536);
  Writer writer = Writer::initialise(region.data(), region.size);
  std::vector<std::vector<ShardSpec>> topologies;
  for (std::size_t size = 0; size < 8; ++size) topologies.push_back({rich_shard("a", size)});
  for (const auto& topology : topologies) REQUIRE(writer.publish(topology).ok());
  const std::uint64_t used = writer.used_words();
  std::uint64_t failed = 0;
  for (std::size_t i = 0; i < 1'000'000; ++i) failed += !writer.publish(topologies[i * 5 % 8]).ok();
  CHECK(failed == 0);
  CHECK(writer.used_words() == used);
  CHECK(writer.names().size() == 1);
  CHECK(to_spec(region.view().shard(0)) == topologies[999'999ULL * 5 % 8][0]);
}

TEST_CASE("a removed shard keeps its record and its index, and gets them back when it returns") {
  Region region(8'192);
  Writer writer = Writer::initialise(region.data(), region.size);
  REQUIRE(writer.publish({shard("a"), shard("b")}).ok());
  const std::uint16_t index = writer.index_of("a");
  REQUIRE(writer.publish({shard("b"), shard("c")}).ok());
  CHECK(region.view().is_removed(index));
  CHECK(writer.is_removed(index));
  CHECK(region.view().shard(index).name() == "a");  // routes that name it can still say what it was
  CHECK(writer.index_of("c") != index);
  REQUIRE(writer.publish({shard("a", "10.0.0.9:5432"), shard("b"), shard("c")}).ok());
  CHECK(writer.index_of("a") == index);
  CHECK_FALSE(region.view().is_removed(index));
  CHECK(region.view().shard(index).primary() == "10.0.0.9:5432");
}

TEST_CASE("a full arena is refused by name and numbers, and what was published stays") {
  Region region(4'096);
  Writer writer = Writer::initialise(region.data(), region.size);
  REQUIRE(writer.publish({shard("a", "first")}).ok());
  Status status;
  int published = 0;
  for (int i = 0; i < 1'000 && status.ok(); ++i) {
    status = writer.publish({shard("a", "address-" + std::to_string(i))});
    if (status.ok()) published = i;
  }
  CHECK(status.code() == Code::no_space);
  CHECK(status.message().find("shard 'a'") != std::string::npos);
  CHECK(status.message().find(std::to_string(writer.used_words() * 8)) != std::string::npos);
  CHECK(region.view().shard(0).primary() == "address-" + std::to_string(published));
  CHECK_FALSE(region.view().is_removed(0));
  CHECK(writer.publish({shard("a", "first")}).ok());  // interned: needs no space
  CHECK(region.view().shard(0).primary() == "first");
}

TEST_CASE("a full index is refused, and no shard's index is given to another") {
  Region region(sizeof(TopologyHeader<StdAtomics>) + 64 * kWordBytes);  // 16 indexes
  Writer writer = Writer::initialise(region.data(), region.size);
  std::set<std::uint16_t> indexes;
  Status status;
  std::size_t fitted = 0;
  for (int i = 0; i < 40 && status.ok(); ++i) {
    status = writer.add({shard("s" + std::to_string(i), "")});
    if (!status.ok()) break;
    ++fitted;
    indexes.insert(writer.index_of("s" + std::to_string(i)));
  }
  CHECK(status.code() == Code::no_space);
  CHECK(fitted > 0);
  CHECK(indexes.size() == fitted);
  CHECK(region.view().shard_count() == fitted);
}

TEST_CASE("what is too long for a record is refused by name, and nothing is published") {
  Region region(65'536);
  Writer writer = Writer::initialise(region.data(), region.size);
  ShardSpec spec = shard("a");
  SUBCASE("no name") {
    spec.name.clear();
  }
  SUBCASE("name") {
    spec.name = std::string(kShardNameBytesMax + 1, 'n');
  }
  SUBCASE("address") {
    spec.primary = std::string(kShardFieldBytesMax + 1, 'p');
  }
  SUBCASE("replicas") {
    spec.replicas.assign(kShardListMax + 1, "r");
  }
  SUBCASE("attributes") {
    spec.attributes.assign(kShardListMax + 1, {"k", "v"});
  }
  const Status status = writer.publish({spec});
  CHECK(status.code() == Code::refused);
  CHECK(region.view().shard_count() == 0);
  CHECK(writer.used_words() == 0);
}

TEST_CASE("a shard of the largest size comes back as it went in") {
  Region region(1 << 20);
  Writer writer = Writer::initialise(region.data(), region.size);
  ShardSpec spec =
      shard(std::string(kShardNameBytesMax, 'n'), std::string(kShardFieldBytesMax, 'p'));
  spec.replicas.assign(kShardListMax, std::string(kShardFieldBytesMax, 'r'));
  spec.attributes.assign(kShardListMax, {std::string(kShardFieldBytesMax, 'k'),
                                         std::string(kShardFieldBytesMax, 'v')});
  REQUIRE(writer.publish({spec}).ok());
  CHECK(to_spec(region.view().shard(0)) == spec);
}

TEST_CASE("the next writer finds names, indexes and interned records again") {
  Region region(16'384);
  {
    Writer writer = Writer::initialise(region.data(), region.size);
    REQUIRE(writer.publish({rich_shard("a", 1), rich_shard("b", 2)}).ok());
    REQUIRE(writer.publish({rich_shard("a", 3)}).ok());
  }
  Writer writer = adopted(region);
  const std::uint64_t used = writer.used_words();
  CHECK(writer.names() == std::vector<std::string>{"a", "b"});
  CHECK(writer.is_removed(writer.index_of("b")));
  REQUIRE(writer.publish({rich_shard("a", 1), rich_shard("b", 2)}).ok());
  CHECK(writer.used_words() == used);
  REQUIRE(writer.add({shard("c")}).ok());
  CHECK(writer.index_of("c") == 2);
}

TEST_CASE("a record a writer died in is never shown, never taken for one, and never written over") {
  const auto record = encode_shard_record(rich_shard("b", 4));
  REQUIRE(record.ok());
  for (std::size_t stored = 0; stored <= record->size(); ++stored) {
    Region region(16'384);
    Writer writer = Writer::initialise(region.data(), region.size);
    REQUIRE(writer.publish({rich_shard("a", 1)}).ok());
    const std::uint64_t end = writer.used_words();
    region.header().arena_end.store(end + record->size());
    auto* arena =
        reinterpret_cast<std::uint64_t*>(region.data() + sizeof(TopologyHeader<StdAtomics>)) +
        region.header().index_words.load();
    std::copy_n(record->begin(), stored, arena + end);

    Writer next = adopted(region);
    CHECK(region.view().shard_count() == 1);
    CHECK(next.index_of("b") == kNoShard);
    CHECK(next.used_words() == end + record->size());
    REQUIRE(next.publish({rich_shard("a", 1), rich_shard("b", 4)}).ok());
    CHECK(to_spec(region.view().shard(next.index_of("b"))) == rich_shard("b", 4));
    // Whole, it serves; cut, it stays a gap.
    CHECK(next.used_words() == end + record->size() * (stored == record->size() ? 1 : 2));
  }
}

TEST_CASE("a shard that was given an index by a writer who died before showing it has none") {
  Region region(16'384);
  Writer writer = Writer::initialise(region.data(), region.size);
  REQUIRE(writer.publish({shard("a")}).ok());
  // Dead between the index word and the count.
  region.header().shard_count.store(0);
  Writer next = adopted(region);
  CHECK(next.index_of("a") == kNoShard);
  REQUIRE(next.publish({shard("b")}).ok());
  CHECK(next.index_of("b") == 0);
  CHECK(region.view().shard(0).name() == "b");
}

TEST_CASE("readers and the next writer survive any bytes") {
  std::mt19937_64 random(99);
  std::uint64_t sum = 0;
  std::uint64_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    Region region(4'096);
    Writer writer = Writer::initialise(region.data(), region.size);
    REQUIRE(writer.publish({rich_shard("a", 2), rich_shard("b", 3), shard("c")}).ok());
    auto* words = reinterpret_cast<std::uint64_t*>(region.data());
    const std::size_t count = region.size / 8;
    const int flips = round % 4 == 0 ? 400 : round % 4;
    for (int i = 0; i < flips; ++i) words[random() % count] = random() >> random() % 64;
    if (round % 3 == 0) words[random() % 4] = random() >> random() % 64;  // the lengths
    if (round % 5 == 0) words[8 + random() % 3] = random() % 600;         // index words
    if (round % 7 == 0) {  // a record's own length and counts
      const std::uint64_t at = region.header().index_words.load() % count;
      words[(8 + at) % count] = random() % 700;
      words[(10 + at) % count] = random();
    }
    sum += read_all(region.view());
    const auto next = Writer::adopt(region.data(), region.size);
    if (!next.ok()) {
      ++refused;
      CHECK(next.status().code() == Code::corrupt);
    }
  }
  CHECK(sum > 0);
  CHECK(refused > 0);
}

TEST_CASE("an index that names no shard's record makes the topology unfit for adoption") {
  Region region(64 * 1024);
  Writer writer = Writer::initialise(region.data(), region.size);
  REQUIRE(writer.publish({shard("s1"), shard("s2")}).ok());
  auto* words = reinterpret_cast<std::uint64_t*>(region.data());
  std::fill(words + region.size / 32, words + region.size / 8, 0);  // the arena, and no index
  const auto next = Writer::adopt(region.data(), region.size);
  REQUIRE(!next.ok());
  CHECK(next.status().code() == Code::corrupt);
}
