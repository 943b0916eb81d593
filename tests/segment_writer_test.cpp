#include "shm/segment_writer.h"

#include <doctest/doctest.h>

#include <bit>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "shm/resolve.h"
#include "tests/segment_buffer.h"
#include "tests/table_buffer.h"

using namespace fingerpost;

namespace {

using Writer = SegmentWriter<StdAtomics>;
using Model = std::map<std::string, RouteFields>;

constexpr std::uint64_t kAllWords = ~std::uint64_t{0};
constexpr std::chrono::nanoseconds kOneSlice{0};

std::string tenant(std::size_t i) {
  return "tenant-" + std::to_string(i);
}

Resolution resolve_in(const SegmentBuffer& buffer, const std::string& id) {
  return resolve<StdAtomics>(buffer.readable(), id);
}

RouteFields route_in(const SegmentBuffer& buffer, const std::string& id) {
  const Resolution found = resolve_in(buffer, id);
  CHECK(found.answer != Answer::undetermined);
  return found.route;
}

// A writer whose first generation holds `entries` tenants on shard 1 with epoch 1.
Writer loaded(SegmentBuffer& buffer, std::uint64_t entries, TableNeeds needs = {}) {
  Writer writer = Writer::initialise(buffer.writable(), buffer.reserve());
  needs.entries = std::max(needs.entries, entries);
  REQUIRE(writer.begin_load(needs, 1, 1, false).ok());
  for (std::uint64_t i = 0; i < entries; ++i)
    REQUIRE(writer.load(tenant(i), active(1, 1)) == Applied::changed);
  writer.switch_generation();
  writer.publish({1, 1, 11, 0});
  return writer;
}

// The wait words as numbers: 64 by placement, then the version's.
std::array<std::uint32_t, 65> wait_words(SegmentBuffer& buffer) {
  const auto& control = buffer.writable().control();
  std::array<std::uint32_t, 65> words{};
  for (std::size_t i = 0; i < 64; ++i)
    words[i] = load_wait_word<StdAtomics>(control.placement_waits[i]);
  words[64] = load_wait_word<StdAtomics>(control.version_wait);
  return words;
}

// Which placement words differ, and whether the version's does.
struct Touched {
  std::uint64_t placements = 0;
  bool version = false;
  bool operator==(const Touched&) const = default;
};
template <class Change>
Touched touched_by(SegmentBuffer& buffer, Change&& change) {
  const auto before = wait_words(buffer);
  change();
  const auto after = wait_words(buffer);
  Touched touched;
  for (std::size_t i = 0; i < 64; ++i)
    touched.placements |= std::uint64_t{before[i] != after[i]} << i;
  touched.version = before[64] != after[64];
  return touched;
}

std::uint64_t word_of(const std::string& id) {
  return std::uint64_t{1} << placement_hash(id) % 64;
}

void finish_copy(Writer& writer) {
  for (;;) {
    const auto done = writer.step_copy(std::chrono::seconds(1));
    REQUIRE_MESSAGE(done.ok(), done.status().message());
    if (*done) break;
  }
  writer.switch_generation();
}

}  // namespace

TEST_CASE("before the first generation is shown no answer is given, and then all of it at once") {
  SegmentBuffer buffer(1'000);
  Writer writer = Writer::initialise(buffer.writable(), buffer.reserve());
  CHECK(resolve_in(buffer, tenant(0)).answer == Answer::undetermined);
  REQUIRE(writer.begin_load({10, 0, FallbackKind::none, 0}, 1, 1, false).ok());
  CHECK(writer.load(tenant(0), active(1, 1)) == Applied::changed);
  CHECK(resolve_in(buffer, tenant(0)).answer == Answer::undetermined);
  writer.switch_generation();
  CHECK(route_in(buffer, tenant(0)) == active(1, 1));
  CHECK(resolve_in(buffer, "absent").answer == Answer::unknown);
}

TEST_CASE(
    "an override goes before its bucket, a bucket before nothing, and each answer names its rule") {
  SegmentBuffer buffer(1'000);
  Writer writer = loaded(buffer, 1, {10, 0, FallbackKind::buckets, 4});
  const std::string id = "somebody";
  const std::uint64_t bucket = placement_hash(id) % 4;
  CHECK(resolve_in(buffer, id).answer == Answer::unknown);
  CHECK(writer.put_fallback(bucket, active(2, 2)) == Applied::changed);
  CHECK(resolve_in(buffer, id).source == RouteSource::bucket);
  CHECK(route_in(buffer, id) == active(2, 2));
  CHECK(writer.put(id, active(3, 3)) == Applied::changed);
  CHECK(resolve_in(buffer, id).source == RouteSource::override_entry);
  CHECK(route_in(buffer, id) == active(3, 3));
  CHECK(writer.put(id, {State::deleted, 3, kNoShard, 4}) == Applied::changed);
  CHECK(resolve_in(buffer, id).answer == Answer::deleted);  // and does not fall to the bucket
  CHECK(writer.remove(id, 5) == Applied::changed);
  CHECK(route_in(buffer, id) == active(2, 2));
}

TEST_CASE("a batch publishes its position and wakes the words it touched, once each") {
  SegmentBuffer buffer(1'000);
  Writer writer = loaded(buffer, 10);
  const auto published = [&] { writer.publish({1, 2, 22, 7}); };
  CHECK(touched_by(buffer, published) == Touched{0, true});
  CHECK(writer.position() == Position{1, 2, 22, 7});

  const auto before = wait_words(buffer);
  CHECK(writer.put(tenant(1), active(2, 2)) == Applied::changed);
  CHECK(writer.put(tenant(1), active(2, 3)) == Applied::changed);
  CHECK(writer.remove(tenant(2), 3) == Applied::changed);
  CHECK(wait_words(buffer) == before);  // nobody is woken in the middle of a batch
  CHECK(touched_by(buffer, published) == Touched{word_of(tenant(1)) | word_of(tenant(2)), true});
  const std::size_t word = placement_hash(tenant(1)) % 64;
  CHECK(wait_words(buffer)[word] == before[word] + 1);

  CHECK(writer.put(tenant(1), active(2, 3)) == Applied::not_newer);
  CHECK(writer.remove(tenant(2), 9) == Applied::not_newer);
  CHECK(touched_by(buffer, published) == Touched{0, true});
  CHECK(writer.get(Counter::rows_applied) == 2);
  CHECK(writer.get(Counter::rows_not_newer) == 1);
  CHECK(writer.get(Counter::rows_removed) == 1);
  CHECK(writer.get(Counter::entries) == 9);
  CHECK(writer.get(Counter::vacant_slots) == 1);
}

TEST_CASE(
    "a bucket wakes the word it shares with its tenants, or every word where it shares none") {
  for (const std::uint64_t count : std::initializer_list<std::uint64_t>{64, 128, 100}) {
    SegmentBuffer buffer(1'000);
    Writer writer = loaded(buffer, 1, {10, 0, FallbackKind::buckets, count});
    CHECK(writer.put_fallback(66 % count, active(2, 2)) == Applied::changed);
    const auto published = [&] { writer.publish({1, 2, 22, 0}); };
    const std::uint64_t shared = std::uint64_t{1} << 2;
    CHECK(touched_by(buffer, published) == Touched{count % 64 == 0 ? shared : kAllWords, true});
    for (int i = 0; i < 200; ++i) {  // so each tenant of the bucket waits on a word that was bumped
      const std::string id = tenant(static_cast<std::size_t>(i));
      if (count % 64 == 0 && placement_hash(id) % count == 66 % count) CHECK(word_of(id) == shared);
    }
  }
}

TEST_CASE("a switch, a topology, an adoption and the superseded mark wake everybody") {
  SegmentBuffer buffer(1'000);
  Writer writer = loaded(buffer, 10);
  const Touched everybody{kAllWords, true};
  REQUIRE(writer.begin_copy({}, 5).ok());
  CHECK(touched_by(buffer, [&] { finish_copy(writer); }) == everybody);
  ShardSpec shard;
  shard.name = "a";
  REQUIRE(writer.publish_topology({shard}).ok());
  CHECK(touched_by(buffer, [&] { writer.publish({1, 2, 22, 0}); }) == everybody);
  CHECK(touched_by(buffer, [&] {
          CHECK(Writer::adopt(buffer.writable(), buffer.reserve()).ok());
        }) == everybody);
  CHECK(touched_by(buffer, [&] { writer.supersede(); }) == everybody);
}

TEST_CASE("a table grows in slices while it changes, and loses and revives nothing") {
  constexpr std::size_t kEntries = 2'000;
  SegmentBuffer buffer(10'000);
  Writer writer = loaded(buffer, kEntries, {0, 0, FallbackKind::buckets, 8});
  Model model;
  for (std::size_t i = 0; i < kEntries; ++i) model[tenant(i)] = active(1, 1);
  std::uint64_t version = 1;
  const auto put = [&](const std::string& id, RouteFields route) {
    CHECK(writer.put(id, route) == Applied::changed);
    model[id] = route;
  };
  const auto remove = [&](const std::string& id) {
    CHECK(writer.remove(id, version) == Applied::changed);
    model.erase(id);
  };
  std::size_t slices = 0;
  std::uint64_t wrong = 0;
  REQUIRE(writer.begin_copy({1'000, 0, FallbackKind::none, 0}, 77).ok());
  CHECK(writer.copying());
  for (bool done = false; !done; ++slices) {
    const auto step = writer.step_copy(kOneSlice);
    REQUIRE(step.ok());
    done = *step;
    ++version;
    const std::size_t at = slices * 20 % kEntries;
    put(tenant(at), active(2, version));                     // changed
    put(tenant(at + 1), {State::migrating, 1, 2, version});  // by a record
    remove(tenant(at + 2));                                  // gone
    remove(tenant(at + 3));
    put(tenant(at + 3), active(3, ++version));                 // gone and back
    put("new-" + std::to_string(slices), active(4, version));  // in the middle of it
    if (slices % 2 == 1) remove("new-" + std::to_string(slices - 1));
    CHECK(writer.put_fallback(slices % 8, active(5, ++version)) == Applied::changed);
    if (slices % 8 == 0)
      for (const auto& [id, route] : model) wrong += route_in(buffer, id) != route;
  }
  CHECK(slices > 20);
  const std::uint64_t slots = writer.table().slot_count();
  writer.switch_generation();
  CHECK(writer.table().slot_count() > slots);
  CHECK(writer.generation() == 2);
  for (const auto& [id, route] : model) wrong += route_in(buffer, id) != route;
  CHECK(wrong == 0);
  CHECK(writer.table().live() == model.size());
  for (std::uint64_t i = 0; i < 8; ++i) CHECK(writer.table().fallback(i).shard == 5);
  CHECK(writer.get(Counter::rebuilds) == 1);
}

TEST_CASE("a rebuild takes the size that the live entries ask for") {
  SegmentBuffer buffer(10'000);
  Writer writer = loaded(buffer, 1'000);
  const std::uint64_t slots = writer.table().slot_count();
  CHECK_FALSE(writer.rebuild_due());
  std::size_t next = 1'000;
  while (!writer.rebuild_due())
    REQUIRE(writer.put(tenant(next++), active(1, 2)) == Applied::changed);
  CHECK(writer.table().live() > slots * 87 / 100);
  REQUIRE(writer.begin_copy({}, 2).ok());
  finish_copy(writer);
  CHECK(writer.table().slot_count() > slots * 120 / 100);
  CHECK(writer.table().slot_count() < slots * 130 / 100);

  const std::uint64_t grown = writer.table().slot_count();
  for (std::size_t i = 0; !writer.rebuild_due(); ++i) {  // many come and go: vacant, not live
    REQUIRE(writer.put("guest-" + std::to_string(i), active(1, 3)) == Applied::changed);
    REQUIRE(writer.remove("guest-" + std::to_string(i), 3) == Applied::changed);
    if (i > 100'000) break;
  }
  REQUIRE(writer.rebuild_due());
  REQUIRE(writer.begin_copy({}, 3).ok());
  finish_copy(writer);
  CHECK(writer.table().vacant() == 0);
  CHECK(writer.table().slot_count() == grown);
}

TEST_CASE(
    "what is removed while the directory is read anew does not come back with the older row") {
  SegmentBuffer buffer(1'000);
  Writer writer = loaded(buffer, 10);
  REQUIRE(writer.begin_load({100, 0, FallbackKind::none, 0}, 2, 1, false).ok());
  CHECK(writer.remove(tenant(0), 50) == Applied::changed);  // seen by the reload later
  CHECK(writer.load(tenant(1), active(1, 1)) == Applied::changed);
  CHECK(writer.remove(tenant(1), 50) == Applied::changed);  // seen by the reload before
  CHECK(writer.remove(tenant(2), 50) == Applied::changed);
  CHECK(writer.put(tenant(2), active(2, 60)) == Applied::changed);  // and created again
  CHECK(writer.remove(tenant(3), 50) == Applied::changed);
  CHECK(writer.remove(tenant(3), 40) == Applied::not_newer);  // an older removal, told twice
  CHECK(writer.load(tenant(0), active(1, 1)) == Applied::not_newer);
  CHECK(writer.load(tenant(2), active(1, 1)) == Applied::not_newer);
  CHECK(writer.load(tenant(3), active(1, 45)) == Applied::not_newer);
  CHECK(writer.load("unseen", active(1, 51)) == Applied::changed);
  writer.switch_generation();
  for (const std::size_t gone : std::initializer_list<std::size_t>{0, 1, 3, 9})
    CHECK(resolve_in(buffer, tenant(gone)).answer == Answer::unknown);
  CHECK(route_in(buffer, tenant(2)) == active(2, 60));
  CHECK(route_in(buffer, "unseen") == active(1, 51));
  CHECK(writer.get(Counter::reloads) == 2);
}

TEST_CASE(
    "a change that the live table has already still reaches a reload that read the directory "
    "before it") {
  SegmentBuffer buffer(1'000);
  Writer writer = loaded(buffer, 10, {10, 0, FallbackKind::buckets, 4});
  CHECK(writer.put(tenant(4), active(9, 30)) == Applied::changed);
  CHECK(writer.put_fallback(1, active(9, 30)) == Applied::changed);
  REQUIRE(writer.begin_load({100, 0, FallbackKind::buckets, 4}, 2, 1, false).ok());
  CHECK(writer.load(tenant(4), active(1, 1)) == Applied::changed);  // as it was before version 30
  CHECK(writer.load_fallback(1, active(1, 1)) == Applied::changed);
  CHECK(writer.put(tenant(4), active(9, 30)) == Applied::not_newer);  // the reload catches up
  CHECK(writer.put_fallback(1, active(9, 30)) == Applied::not_newer);
  writer.switch_generation();
  CHECK(route_in(buffer, tenant(4)) == active(9, 30));
  CHECK(writer.table().fallback(1) == active(9, 30));
}

TEST_CASE("nothing of another history touches the old generation until the switch") {
  SegmentBuffer buffer(1'000);
  Writer writer = loaded(buffer, 10, {10, 0, FallbackKind::buckets, 4});
  CHECK(writer.put_fallback(2, active(1, 1)) == Applied::changed);
  Model before;
  for (std::size_t i = 0; i < 10; ++i) before[tenant(i)] = active(1, 1);
  const auto unchanged = [&] {
    for (const auto& [id, route] : before) CHECK(route_in(buffer, id) == route);
    CHECK(writer.table().live() == before.size());
    CHECK(writer.table().fallback(2) == active(1, 1));
    CHECK(writer.incarnation() == 1);
  };
  REQUIRE(writer.begin_load({10, 0, FallbackKind::buckets, 4}, 2, 8, true).ok());
  CHECK(writer.load(tenant(0), active(5, 100)) == Applied::changed);
  CHECK(writer.put(tenant(1), active(6, 101)) == Applied::changed);
  CHECK(writer.put(tenant(20), active(6, 101)) == Applied::changed);
  CHECK(writer.put_fallback(2, active(6, 101)) == Applied::changed);
  CHECK(writer.remove(tenant(2), 200) == Applied::not_newer);  // the new history never had it
  unchanged();

  SUBCASE("given up") {
    writer.discard_generation();
    unchanged();
    CHECK(writer.put(tenant(1), active(2, 2)) == Applied::changed);
    CHECK(route_in(buffer, tenant(1)) == active(2, 2));
  }
  SUBCASE("shown") {
    writer.switch_generation();
    CHECK(writer.incarnation() == 8);
    CHECK(route_in(buffer, tenant(0)) == active(5, 100));
    CHECK(route_in(buffer, tenant(1)) == active(6, 101));
    CHECK(writer.table().fallback(2) == active(6, 101));
    CHECK(writer.table().live() == 3);
    // An epoch of the old history is no newer than one of the new, and does not matter any more.
    CHECK(writer.put(tenant(0), active(1, 99)) == Applied::not_newer);
  }
}

TEST_CASE("at capacity new tenants are refused, known ones still change, and none is driven out") {
  SegmentBuffer buffer(100);
  Writer writer = loaded(buffer, 100);
  CHECK(writer.put("one-more", active(1, 2)) == Applied::full);
  CHECK(resolve_in(buffer, "one-more").answer == Answer::unknown);
  CHECK(writer.put(tenant(7), active(2, 2)) == Applied::changed);
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(resolve_in(buffer, tenant(i)).answer == Answer::found);
  CHECK(writer.remove(tenant(8), 2) == Applied::changed);
  CHECK(writer.put("one-more", active(1, 2)) == Applied::changed);

  // Another history is judged by its own table.
  REQUIRE(writer.begin_load({100, 0, FallbackKind::none, 0}, 2, 9, true).ok());
  for (std::size_t i = 0; i < 100; ++i) {
    const std::string id = "other-" + std::to_string(i);
    CHECK((i % 2 == 0 ? writer.put(id, active(1, 1)) : writer.load(id, active(1, 1))) ==
          Applied::changed);
  }
  CHECK(writer.put("other-100", active(1, 1)) == Applied::full);
  CHECK(writer.load("other-100", active(1, 1)) == Applied::full);
  CHECK(writer.load("other-3", active(1, 1)) == Applied::not_newer);
}

TEST_CASE("a table without room says so, stores nothing, and takes the change after a rebuild") {
  SegmentBuffer buffer(100'000);
  SUBCASE("of slots") {
    Writer writer = loaded(buffer, 10);
    std::size_t next = 10;
    Applied applied = Applied::changed;
    for (; applied == Applied::changed; ++next) applied = writer.put(tenant(next), active(1, 2));
    CHECK(applied == Applied::no_room);
    CHECK(writer.table().live() == writer.table().slot_count());
    CHECK_FALSE(writer.has_room({1, 0, FallbackKind::none, 0}));
    CHECK(resolve_in(buffer, tenant(next - 1)).answer == Answer::unknown);
    REQUIRE(writer.begin_copy({100, 0, FallbackKind::none, 0}, 3).ok());
    finish_copy(writer);
    CHECK(writer.has_room({50, 0, FallbackKind::none, 0}));
    CHECK(writer.put(tenant(next - 1), active(1, 2)) == Applied::changed);
    for (std::size_t i = 0; i < next; ++i)
      CHECK(resolve_in(buffer, tenant(i)).answer == Answer::found);
  }
  SUBCASE("of records") {
    Writer writer = loaded(buffer, 10);
    const RouteFields moving{State::migrating, 1, 2, 0};
    std::uint64_t epoch = 1;
    Applied applied = Applied::changed;
    while (applied == Applied::changed) {
      RouteFields route = moving;
      route.epoch = ++epoch;
      applied = writer.put(tenant(3), route);
    }
    CHECK(applied == Applied::no_room);
    CHECK(writer.rebuild_due());
    CHECK(route_in(buffer, tenant(3)).epoch == epoch - 1);
    REQUIRE(writer.begin_copy({}, 3).ok());
    finish_copy(writer);
    CHECK_FALSE(writer.rebuild_due());
    CHECK(writer.table().records_end() == kRouteRecordWords);  // what nobody names any more is gone
    CHECK(writer.put(tenant(3), {State::migrating, 1, 2, epoch}) == Applied::changed);
  }
}

TEST_CASE("memory that is refused is a named error and leaves the live generation as it was") {
  SegmentBuffer buffer(1'000'000);
  Writer writer = Writer::initialise(buffer.writable(), buffer.reserve(2 * kHugeBytes));
  REQUIRE(writer.begin_load({1'000, 0, FallbackKind::none, 0}, 1, 1, false).ok());
  REQUIRE(writer.load(tenant(0), active(1, 1)) == Applied::changed);
  writer.switch_generation();
  const Status refused = writer.begin_copy({200'000, 0, FallbackKind::none, 0}, 2);
  CHECK(refused.code() == Code::no_space);
  CHECK_FALSE(writer.building());
  CHECK(buffer.writable().control().allocated[1].load() == 0);
  CHECK(route_in(buffer, tenant(0)) == active(1, 1));
  CHECK(writer.put(tenant(0), active(2, 2)) == Applied::changed);

  const Status beyond = writer.begin_load({2'000'000, 0, FallbackKind::none, 0}, 2, 1, false);
  CHECK(beyond.code() == Code::no_space);
  CHECK(beyond.message().find("2000000 entries") != std::string::npos);
  CHECK(beyond.message().find("capacity 1000000") != std::string::npos);
}

TEST_CASE("a half's allocated length only grows, and a smaller generation asks for nothing") {
  SegmentBuffer buffer(1'000'000);
  Writer writer = loaded(buffer, 10, {100'000, 0, FallbackKind::none, 0});
  const auto& allocated = buffer.writable().control().allocated;
  const std::uint64_t large = allocated[0].load();
  CHECK(large == buffer.reserved[0]);
  for (const std::uint64_t entries : std::initializer_list<std::uint64_t>{1'000, 2'000, 1'000}) {
    REQUIRE(writer.begin_load({entries, 0, FallbackKind::none, 0}, 2, 1, false).ok());
    writer.switch_generation();
    CHECK(allocated[0].load() == large);
    CHECK(allocated[0].load() == buffer.reserved[0]);
    CHECK(allocated[1].load() == buffer.reserved[1]);
    CHECK(allocated[1].load() >= kHugeBytes);
  }
}

TEST_CASE(
    "a rebuild whose new table cannot hold a served change is given up, and serving goes on") {
  SegmentBuffer buffer(100'000);
  Writer writer = loaded(buffer, 10, {1'000, 0, FallbackKind::none, 0});
  REQUIRE(writer.begin_load({1, 0, FallbackKind::none, 0}, 2, 1, false).ok());
  const std::uint64_t failures = writer.get(Counter::rebuild_failures);
  std::size_t next = 10;
  while (writer.building() && next < 1'000)
    CHECK(writer.put(tenant(next++), active(1, 2)) == Applied::changed);
  CHECK(next == 10 + 16 + 1);  // one group of sixteen, and the one that did not fit
  CHECK(writer.get(Counter::rebuild_failures) == failures + 1);
  for (std::size_t i = 0; i < next; ++i)
    CHECK(resolve_in(buffer, tenant(i)).answer == Answer::found);
}

TEST_CASE(
    "the next writer goes on where the last one died, and a half-built generation is forgotten") {
  SegmentBuffer buffer(10'000);
  Model model;
  std::array<std::uint64_t, 3> gauges{};
  {
    Writer writer = loaded(buffer, 500, {0, 0, FallbackKind::buckets, 16});
    ShardSpec shard;
    for (const char* name : {"a", "b"}) {
      shard.name = name;
      REQUIRE(writer.add_shards({shard}).ok());
    }
    for (std::size_t i = 0; i < 500; ++i) model[tenant(i)] = active(1, 1);
    for (std::size_t i = 0; i < 50; ++i) {
      model[tenant(i)] = {State::migrating, 1, 2, 9};
      CHECK(writer.put(tenant(i), model[tenant(i)]) == Applied::changed);
    }
    for (std::size_t i = 100; i < 120; ++i) {
      CHECK(writer.remove(tenant(i), 9) == Applied::changed);
      model.erase(tenant(i));
    }
    CHECK(writer.put_fallback(3, active(4, 9)) == Applied::changed);
    writer.publish({1, 9, 99, 5});
    gauges = {writer.table().live(), writer.table().vacant(), writer.table().records_live()};
    REQUIRE(writer.begin_copy({}, 8).ok());
    REQUIRE(writer.step_copy(kOneSlice).ok());
  }
  auto adopted = Writer::adopt(buffer.writable(), buffer.reserve());
  REQUIRE_MESSAGE(adopted.ok(), adopted.status().message());
  Writer& writer = *adopted;
  CHECK(writer.position() == Position{1, 9, 99, 5});
  CHECK(writer.generation() == 1);
  CHECK(writer.incarnation() == 1);
  CHECK(writer.fallback_kind() == FallbackKind::buckets);
  CHECK_FALSE(writer.building());
  CHECK(std::array{writer.table().live(), writer.table().vacant(), writer.table().records_live()} ==
        gauges);
  CHECK(writer.topology().names() == std::vector<std::string>{"a", "b"});
  CHECK(writer.get(Counter::adoptions) == 1);
  CHECK(writer.get(Counter::slots_mended) == 0);
  CHECK(writer.get(Counter::entries) == model.size());
  for (const auto& [id, route] : model) CHECK(route_in(buffer, id) == route);
  CHECK(resolve_in(buffer, "stranger").answer ==
        (placement_hash("stranger") % 16 == 3 ? Answer::found : Answer::unknown));

  CHECK(writer.put(tenant(0), active(7, 10)) == Applied::changed);
  model[tenant(0)] = active(7, 10);
  REQUIRE(writer.begin_copy({2'000, 0, FallbackKind::none, 0}, 9).ok());
  finish_copy(writer);
  CHECK(writer.generation() == 2);
  for (const auto& [id, route] : model) CHECK(route_in(buffer, id) == route);
}

TEST_CASE("bytes that make no sense, and a superseded segment, are not adopted") {
  SegmentBuffer buffer(1'000);
  const auto adopt = [&] {
    return Writer::adopt(buffer.writable(), buffer.reserve()).status().code();
  };
  SUBCASE("no generation was ever shown") {
    Writer writer = Writer::initialise(buffer.writable(), buffer.reserve());
    REQUIRE(writer.begin_load({10, 0, FallbackKind::none, 0}, 1, 1, false).ok());
    CHECK(adopt() == Code::corrupt);
    return;
  }
  Writer writer = loaded(buffer, 10);
  auto& control = buffer.writable().control();
  auto& header = *reinterpret_cast<TableHeader<StdAtomics>*>(buffer.writable().half(0));
  auto& topology =
      *reinterpret_cast<TopologyHeader<StdAtomics>*>(buffer.writable().topology_region());
  SUBCASE("superseded") {
    writer.supersede();
    CHECK(adopt() == Code::conflict);
    CHECK(route_in(buffer, tenant(0)) ==
          active(1, 1));  // readers go on until they have the successor
    CHECK(root_superseded(resolve_in(buffer, tenant(0)).root));
  }
  SUBCASE("the root names another generation") {
    control.root.store(encode_root(7, 0));
    CHECK(adopt() == Code::corrupt);
  }
  SUBCASE("the root names a half that is not there") {
    control.root.store(encode_root(1, 1));
    CHECK(adopt() == Code::corrupt);
    CHECK(resolve_in(buffer, tenant(0)).answer == Answer::undetermined);
  }
  SUBCASE("a table larger than its memory") {
    header.group_count.store(1 << 20);
    CHECK(adopt() == Code::corrupt);
    CHECK(resolve_in(buffer, tenant(0)).answer == Answer::undetermined);
  }
  SUBCASE("more records given out than there are") {
    header.records_end.store(header.records_words.load() + 1);
    CHECK(adopt() == Code::corrupt);
  }
  SUBCASE("a topology larger than its region") {
    topology.arena_words.store(~std::uint64_t{0});
    CHECK(adopt() == Code::corrupt);
  }
}
