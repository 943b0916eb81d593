#include "shm/split_record.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "shm/resolve.h"
#include "tests/small_segment.h"
#include "tests/table_buffer.h"

using namespace fingerpost;

namespace {

using Words = std::vector<StdAtomics::Word>;

RecordsView<StdAtomics> view_of(const Words& words) {
  return {words.data(), words.size()};
}

// A segment with one generation of one group, in which `id` is what the test puts.
struct Served {
  SmallSegment segment;
  SegmentWriter<StdAtomics> writer = make();

  SegmentWriter<StdAtomics> make() {
    auto made =
        SegmentWriter<StdAtomics>::initialise(segment.writable<StdAtomics>(), reserve_nothing());
    REQUIRE(made.begin_load({8, 64, FallbackKind::none, 0}, 1, 1, false).ok());
    made.switch_generation();
    return made;
  }
  Resolution ask(const std::string& id) const {
    return resolve<StdAtomics>(segment.readable<StdAtomics>(), id);
  }
  Resolution ask(const std::string& id, const std::string& object) const {
    return resolve<StdAtomics>(segment.readable<StdAtomics>(), id, object);
  }
};

SplitFields split_of(std::uint64_t read_at, std::vector<RouteFields> parts) {
  std::uint64_t epoch = 0;
  for (const RouteFields& part : parts) epoch = std::max(epoch, part.epoch);
  return {epoch, read_at, std::move(parts)};
}

}  // namespace

TEST_CASE("a split record lies as its drawing says") {
  TableBuffer table(Geometry{1, 0, 64});
  const RouteFields moving{State::migrating, 7, 9, 0x1122};
  REQUIRE(table.writer().put_split("acme", {0x3344, 0x5566, {active(3, 0x3344), moving}}) ==
          Put::inserted);
  const auto& words = table.bytes().records;
  CHECK(words[0].load() == 0x0200'0000'0000'0002);
  CHECK(words[1].load() == 0x3344);
  CHECK(words[2].load() == 0x5566);
  CHECK(words[3].load() == 0x0000'0001'FFFF'0003);
  CHECK(words[4].load() == 0x3344);
  CHECK(words[5].load() == 0x0000'0002'0009'0007);
  CHECK(words[6].load() == 0x1122);
  CHECK(table.writer().records_end() == 7);
  const std::uint64_t route = table.bytes().slots[table.writer().slot_of("acme")].route.load();
  CHECK(route == 0xE000'0000'0000'0000);
}

TEST_CASE("a word that names no split, or names one that makes no sense, has no parts") {
  Words words(16);
  const std::uint64_t here = encode_record_reference(State::split, 1);
  const auto parts = [&](std::uint64_t word) {
    return SplitView<StdAtomics>(word, view_of(words)).parts();
  };
  for (const std::uint64_t count : std::initializer_list<std::uint64_t>{0, 1, 1'025, 0xFFFF}) {
    CAPTURE(count);
    words[1].store(encode_split_head(count));
    CHECK(parts(here) == 0);
    CHECK(SplitView<StdAtomics>(here, view_of(words)).whole() == RouteFields{});
    CHECK(load_record<StdAtomics>(here, view_of(words)) == RouteFields{});
    CHECK(load_part<StdAtomics>(here, view_of(words), "o") == RouteFields{});
  }
  words[1].store(encode_split_head(2));
  CHECK(parts(here) == 2);
  CHECK(parts(here & ~kRecordFlag) == 0);
  CHECK(parts(encode_record_reference(State::split, 15)) == 0);
  CHECK(parts(encode_record_reference(State::split, kEpochInlineMax)) == 0);
  words[1].store(encode_record_head(active(2, 1)));
  CHECK(parts(here) == 0);
  // A record that the area cuts short: the parts behind its end have no route.
  words[14].store(encode_split_head(1'024));
  const SplitView<StdAtomics> cut(encode_record_reference(State::split, 14), view_of(words));
  CHECK(cut.parts() == 1'024);
  CHECK(cut.part(0).state == State::none);
  CHECK(cut.part(1'023).state == State::none);
  unsigned visited = 0;
  CHECK(load_parts<StdAtomics>(encode_record_reference(State::split, 14), view_of(words),
                               [&](unsigned, const RouteFields&) { ++visited; }) == RouteFields{});
  CHECK(visited == 0);
}

TEST_CASE(
    "a split tenant has no shard, its objects have those of their parts, and all come at once") {
  Served served;
  std::vector<RouteFields> routes;
  for (std::uint16_t k = 0; k < 1'024; ++k) {
    routes.push_back({static_cast<State>(k % 5 + 1), static_cast<std::uint16_t>(k * 3),
                      static_cast<std::uint16_t>(k % 2 == 0 ? kNoShard : k), k + 1U});
  }
  REQUIRE(served.writer.put_split("acme", split_of(2'000, routes)) == Applied::changed);
  const Resolution whole = served.ask("acme");
  CHECK(whole.answer == Answer::split);
  CHECK(whole.source == RouteSource::override_entry);
  CHECK(whole.route.parts == 1'024);
  CHECK(whole.route.shard == kNoShard);
  CHECK(whole.route.target == kNoShard);
  CHECK(whole.route.epoch == 1'024);
  for (RouteFields& route : routes) route.parts = 1'024;
  for (int i = 0; i < 5'000; ++i) {
    const std::string object = "object-" + std::to_string(i);
    const Resolution part = served.ask("acme", object);
    const RouteFields& expected = routes[placement_hash(object) % 1'024];
    CHECK(part.route == expected);
    CHECK(part.source == RouteSource::part);
    CHECK(part.answer == (expected.state == State::deleted ? Answer::deleted : Answer::found));
  }
  CHECK(served.ask("acme", "").route == routes[placement_hash("") % 1'024]);
  std::vector<RouteFields> seen;
  const Resolution all = resolve_all<StdAtomics>(served.segment.readable<StdAtomics>(), "acme",
                                                 [&](unsigned k, const RouteFields& route) {
                                                   CHECK(k == seen.size());
                                                   seen.push_back(route);
                                                 });
  CHECK(all.answer == Answer::split);
  CHECK(all.route == whole.route);
  CHECK(seen == routes);
}

TEST_CASE("an object asked of a tenant that is not split changes nothing of its answer") {
  Served served;
  REQUIRE(served.writer.put("plain", active(4, 9)) == Applied::changed);
  REQUIRE(served.writer.put("moving", {State::migrating, 4, 5, 9}) == Applied::changed);
  REQUIRE(served.writer.put("gone", {State::deleted, 4, kNoShard, 9}) == Applied::changed);
  for (const std::string id : {"plain", "moving", "gone", "nobody"}) {
    CAPTURE(id);
    const Resolution without = served.ask(id);
    const Resolution with = served.ask(id, "an object");
    unsigned visited = 0;
    const Resolution all =
        resolve_all<StdAtomics>(served.segment.readable<StdAtomics>(), id,
                                [&](unsigned, const RouteFields&) { ++visited; });
    for (const Resolution& other : {with, all}) {
      CHECK(other.answer == without.answer);
      CHECK(other.source == without.source);
      CHECK(other.route == without.route);
    }
    CHECK(visited == 0);
  }
}

TEST_CASE(
    "where the parts grow to a multiple, part k mod the number before had the objects of part k") {
  for (int i = 0; i < 1'000; ++i) {
    const std::string object = "object-" + std::to_string(i);
    for (const unsigned parts : {2U, 3U, 64U}) {
      for (const unsigned factor : {2U, 3U, 7U}) {
        CHECK(part_of(object, parts * factor) % parts == part_of(object, parts));
      }
    }
  }
}

TEST_CASE("of rows and splits of one tenant the later reading of the directory stays") {
  TableBuffer buffer(Geometry{1, 0, 512});
  auto& table = buffer.writer();
  const auto at_version = [&] { return table.find_split("acme").read_at(); };
  REQUIRE(table.put("acme", active(1, 5)) == Put::inserted);
  CHECK(table.put_split("acme", split_of(4, {active(1, 2), active(1, 3)})) == Put::not_newer);
  CHECK(table.find("acme") == active(1, 5));
  // The row of version 5 was there when version 5 was read, and the tenant was split all the same.
  CHECK(table.put_split("acme", split_of(5, {active(1, 2), active(1, 3)})) == Put::updated);
  CHECK(table.put("acme", active(2, 5)) == Put::not_newer);
  CHECK(table.put_split("acme", split_of(4, {active(9, 4), active(9, 4)})) == Put::not_newer);
  CHECK(table.put_split("acme", split_of(5, {active(9, 2), active(9, 3)})) == Put::not_newer);
  CHECK(table.put_split("acme", split_of(5, {active(9, 2), active(9, 2)})) == Put::not_newer);
  CHECK(at_version() == 5);
  // The same version, with a part that could not be applied before.
  CHECK(table.put_split("acme", split_of(5, {active(1, 2), active(3, 4)})) == Put::updated);
  CHECK(table.find_split("acme").part(1).shard == 3);
  CHECK(table.put_split("acme", split_of(8, {active(1, 2), active(3, 4)})) == Put::updated);
  CHECK(!table.remove("acme", 7));
  CHECK(table.put("acme", active(2, 8)) == Put::not_newer);
  CHECK(table.put("acme", active(2, 9)) == Put::updated);
  CHECK(table.find("acme") == active(2, 9));
  CHECK(table.put_split("acme", split_of(10, {active(2, 9), active(2, 9)})) == Put::updated);
  CHECK(table.remove("acme", 10));
  CHECK(table.find("acme").state == State::none);
  CHECK(table.find_split("acme").parts() == 0);
}

TEST_CASE(
    "a split without room for its record leaves what was there, and no record is given twice") {
  TableBuffer buffer(Geometry{1, 0, 20});
  auto& table = buffer.writer();
  const SplitFields two = split_of(5, {active(1, 2), active(1, 3)});
  REQUIRE(table.put("acme", active(1, 1)) == Put::inserted);
  REQUIRE(table.put_split("acme", two) == Put::updated);
  CHECK(table.records_end() == 7);
  CHECK(table.records_live() == 7);
  REQUIRE(table.put_split("acme", split_of(6, {active(1, 2), active(2, 6)})) == Put::updated);
  CHECK(table.records_end() == 14);
  CHECK(table.records_live() == 7);
  CHECK(table.put_split("acme", split_of(7, {active(1, 2), active(2, 7)})) == Put::no_room);
  CHECK(table.put_split("other", two) == Put::no_room);
  CHECK(table.find_split("acme").part(1) == [] {
    RouteFields part = active(2, 6);
    part.parts = 2;
    return part;
  }());
  CHECK(table.find("other").state == State::none);
  auto& next = buffer.restart();
  CHECK(next.adopt() == 0);
  CHECK(next.records_live() == 7);
  CHECK(next.records_end() == 14);
  CHECK(next.put("acme", active(2, 8)) == Put::updated);
  CHECK(next.records_live() == 0);
}

TEST_CASE("a split goes over into the next generation word for word") {
  Served served;
  const SplitFields split{77, 99, {active(1, 76), {State::frozen, 2, 3, 77}, active(4, 1)}};
  REQUIRE(served.writer.put_split("acme", split) == Applied::changed);
  REQUIRE(served.writer.put_split("gone", split) == Applied::changed);
  REQUIRE(served.writer.begin_copy({}, 2).ok());
  REQUIRE(served.writer.remove("gone", 99) == Applied::changed);
  const auto done = served.writer.step_copy(std::chrono::seconds(1));
  REQUIRE((done.ok() && *done));
  served.writer.switch_generation();
  SplitFields expected = split;
  for (RouteFields& part : expected.parts) part.parts = 3;
  CHECK(fields_of(served.writer.table().find_split("acme")) == expected);
  CHECK(served.ask("gone").answer == Answer::unknown);
  CHECK(served.writer.table().records_live() == split_record_words(3));
}
