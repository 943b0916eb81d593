// Many tenants at once get what each gets alone.
#include <doctest/doctest.h>

#include "reader/reader.h"
#include "shm/boot_clock.h"
#include "shm/owned_segment.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

constexpr std::uint64_t kEntries = 1'000;
constexpr std::uint64_t kBuckets = 7;

std::string entry(std::uint64_t number) {
  // Of all lengths that lie differently in a slot.
  return "tenant-" + std::to_string(number) + std::string(number % 90, 'x');
}

RouteFields route_of(std::uint64_t number) {
  // Every tenth has a record.
  return {State::active, static_cast<std::uint16_t>(number % 2),
          number % 10 == 0 ? std::uint16_t{1} : kNoShard, number + 1};
}

// A segment with entries, and buckets for whoever has none.
class Served {
 public:
  Served() {
    SegmentIdentity identity;
    identity.directory_id = *parse_directory_id("0f000000-0000-4000-8000-0000000000ba");
    identity.plan = SegmentPlan::make(4 * kEntries);
    identity.boot_id = *current_boot_id();
    auto created = OwnedSegment::create(path(), SegmentAccess::of_this_process(), identity);
    REQUIRE(created.ok());
    segment_ = std::move(*created);
    auto& writer = segment_->writer();
    std::vector<ShardSpec> shards(2);
    shards[0].name = "a";
    shards[1].name = "b";
    REQUIRE(writer.publish_topology(shards).ok());
    TableNeeds needs;
    needs.entries = kEntries;
    needs.record_words = 40 * kEntries;
    needs.fallback_kind = FallbackKind::buckets;
    needs.fallback_count = kBuckets;
    REQUIRE(writer.begin_load(needs, 1, 1, false).ok());
    for (std::uint64_t i = 0; i < kEntries; ++i)
      REQUIRE(writer.load(entry(i), route_of(i)) == Applied::changed);
    for (std::uint64_t i = 0; i < kBuckets; ++i) writer.load_fallback(i, route_of(i));
    writer.switch_generation();
    writer.publish({1, kEntries, 1, 0});
    REQUIRE(segment_->publish_first().ok());
  }
  std::string path() const { return folder_.path() + "/fingerpost.batch"; }

 private:
  TempFolder folder_{"/dev/shm"};
  std::unique_ptr<OwnedSegment> segment_;
};

bool same(const Route& left, const Route& right) {
  return left.answer() == right.answer() && left.source() == right.source() &&
         left.epoch() == right.epoch() && left.shard().name() == right.shard().name() &&
         left.target().name() == right.target().name();
}

TEST_CASE("many tenants at once get what each gets alone, whatever they are and however many") {
  const Served served;
  const auto reader = Reader::open(served.path());
  REQUIRE(reader.ok());
  std::vector<std::string> ids;
  for (std::uint64_t i = 0; i < 300; ++i) {
    ids.push_back(entry(i * 7 % kEntries));
    if (i % 3 == 0) ids.push_back("nobody-" + std::to_string(i));  // its bucket answers
  }
  ids[100] = "";                     // not ids: the batch that holds them is asked one by one
  ids[101] = std::string(300, 'y');  // too long
  ids[200] = "bucket:1";             // reserved
  const std::vector<std::string_view> views(ids.begin(), ids.end());
  for (const std::size_t count : {0U, 1U, 2U, 15U, 16U, 17U, 48U, 64U, 150U, 400U}) {
    std::vector<Route> routes(count);
    reader->resolve_many(std::span(views).first(count), routes);
    for (std::size_t i = 0; i < count; ++i) {
      CAPTURE(ids[i]);
      CHECK(same(routes[i], reader->resolve(views[i])));
    }
  }
  std::vector<Route> routes(views.size());
  reader->resolve_many(views, routes);
  CHECK(routes[0].source() == RouteSource::override_entry);
  CHECK(routes[0].epoch() == 1);
  CHECK(routes[0].target().name() == "b");
  CHECK(routes[1].source() == RouteSource::bucket);
  CHECK(routes[100].answer() == Answer::refused);
  CHECK(routes[101].answer() == Answer::refused);
  CHECK(routes[200].answer() == Answer::refused);
  CHECK(reader->undetermined_count() == 0);
}

}  // namespace
}  // namespace fingerpost
