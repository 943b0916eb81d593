// The short way through a lookup, the whole one and the batch say the same, of the same table,
// whatever was done to it.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "shm/resolve.h"
#include "shm/resolve_batch.h"
#include "tests/segment_buffer.h"

namespace fingerpost {
namespace {

using Writer = SegmentWriter<StdAtomics>;

// Of every length there is a step at: words, what fits a slot, its tail, and one past each.
std::vector<std::string> ids() {
  std::vector<std::string> all;
  for (const std::size_t length :
       {1U,  2U,  7U,  8U,  9U,  15U, 16U, 17U, 23U,  24U,  25U,  31U,  32U, 33U,
        39U, 40U, 41U, 47U, 48U, 49U, 56U, 57U, 128U, 129U, 240U, 241U, 255U}) {
    for (char first = 'a'; first < 'a' + 12; ++first) {
      all.push_back(std::string(1, first) + std::string(length - 1, 'x'));
      if (length > 8) all.push_back(std::string(length - 1, 'y') + first);  // the last byte tells
    }
  }
  return all;
}

bool same(const Resolution& one, const Resolution& other) {
  return one.answer == other.answer && one.source == other.source && one.route == other.route &&
         one.root == other.root;
}

RouteFields any_route(std::mt19937_64& random, std::uint64_t epoch) {
  const auto shard = static_cast<std::uint16_t>(random() % 4);
  switch (random() % 6) {
    case 0:
      return {State::deleted, shard, kNoShard, epoch};
    case 1:
      return {State::migrating, shard, static_cast<std::uint16_t>(3 - shard), epoch};
    case 2:
      return {State::frozen, shard, kNoShard, epoch};
    case 3:
      return {State::active, shard, kNoShard, epoch + (std::uint64_t{1} << 45)};  // in a record
    default:
      return {State::active, shard, kNoShard, epoch};
  }
}

void compare(const SegmentBuffer& buffer, const std::vector<std::string>& all) {
  const auto memory = buffer.readable();
  const std::vector<std::string_view> views(all.begin(), all.end());
  std::vector<Resolution> found(all.size());
  std::vector<char> done(all.size());
  resolve_batch<StdAtomics>(memory, views,
                            [&](std::size_t i, bool is_done, const Resolution& resolution) {
                              found[i] = resolution;
                              done[i] = is_done;
                            });
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Resolution whole =
        resolve_following<StdAtomics>(memory, all[i], WholeTenant<StdAtomics>{});
    REQUIRE_MESSAGE(same(resolve<StdAtomics>(memory, all[i]), whole), all[i]);
    if (done[i] != 0) REQUIRE_MESSAGE(same(found[i], whole), all[i]);
  }
}

void live(FallbackKind kind, std::uint64_t count, std::uint64_t seed) {
  SegmentBuffer buffer(4'000);
  Writer writer = Writer::initialise(buffer.writable(), buffer.reserve());
  const auto all = ids();
  std::mt19937_64 random(seed);
  REQUIRE(writer.begin_load({300, 20'000, kind, count}, seed, 1, false).ok());
  for (std::uint64_t i = 0; i < count; i += 2) writer.load_fallback(i, any_route(random, 1));
  writer.switch_generation();
  std::uint64_t version = 1;
  for (int round = 0; round < 60; ++round) {
    for (int change = 0; change < 40; ++change) {
      const std::string& id = all[random() % all.size()];
      ++version;
      switch (random() % 8) {
        case 0:
        case 1:
          writer.remove(id, version);
          break;
        case 2: {
          SplitFields split{version, version, {}};
          for (int part = 0; part < 3; ++part) split.parts.push_back(any_route(random, version));
          writer.put_split(id, split);
          break;
        }
        case 3:
          if (count != 0) writer.put_fallback(random() % count, any_route(random, version));
          break;
        default:
          writer.put(id, any_route(random, version));
      }
    }
    writer.publish({1, version, version, 0});
    compare(buffer, all);
    if (round % 10 != 9) continue;
    REQUIRE(writer.begin_copy({200, 20'000, kind, count}, round % 20 == 9 ? seed : random()).ok());
    for (;;) {
      const auto copied = writer.step_copy(std::chrono::milliseconds(1));
      REQUIRE(copied.ok());
      if (*copied) break;
    }
    writer.switch_generation();
    compare(buffer, all);
  }
}

}  // namespace

TEST_CASE("every way through a lookup gives the same answer, with each fallback rule and none") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    live(FallbackKind::none, 0, seed);
    live(FallbackKind::buckets, 1, seed);
    live(FallbackKind::buckets, 8, seed);
    live(FallbackKind::buckets, 11, seed);
    live(FallbackKind::hash, 3, seed);
  }
}

}  // namespace fingerpost
