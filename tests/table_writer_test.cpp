#include "shm/table_writer.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/table_buffer.h"

using namespace fingerpost;

namespace {

constexpr std::uint64_t kAnyVersion = ~std::uint64_t{0};
constexpr std::uint64_t kSeed = 1;

// Ids of all lengths around the inline limit; many share their first or last bytes.
std::vector<std::string> mixed_ids(std::size_t count) {
  constexpr std::array<std::size_t, 12> kLengths = {0, 0, 0, 8, 16, 39, 40, 41, 47, 48, 49, 255};
  std::set<std::string> ids;
  for (std::size_t i = 0; ids.size() < count; ++i) {
    const std::string number = std::to_string(i);
    const std::size_t length = kLengths[i % kLengths.size()];
    const std::size_t padding = length > number.size() ? length - number.size() : 0;
    const bool in_front = i / kLengths.size() % 2 == 0;
    ids.insert(in_front ? std::string(padding, 'p') + number : number + std::string(padding, 's'));
  }
  return {ids.begin(), ids.end()};
}

// Ids whose home is `group` (and, where asked, `position`) of `group_count`.
std::vector<std::string> ids_at_home(std::size_t count, std::uint64_t group_count,
                                     std::uint64_t group, int position = -1) {
  std::vector<std::string> ids;
  for (std::uint64_t i = 0; ids.size() < count; ++i) {
    std::string id = "id-" + std::to_string(i);
    const Home home = home_of(index_hash(id, kSeed), group_count);
    if (home.group != group) continue;
    if (position >= 0 && home.position != static_cast<unsigned>(position)) continue;
    ids.push_back(std::move(id));
  }
  return ids;
}

std::uint64_t slot_of(const TableBuffer& table, const std::string& id) {
  const auto& g = table.bytes();
  const Generation<StdAtomics, false> view{g.geometry, g.seed,     g.header, g.groups,
                                           g.slots,    g.fallback, g.records};
  const Home home = home_of(index_hash(id, g.seed), g.geometry.group_count);
  return find_in_table(view, PackedId<StdAtomics>(id), home).slot;
}

void store_fingerprint(const TableBuffer& table, std::uint64_t slot, std::uint8_t value) {
  auto& group = table.bytes().groups[slot / kGroupSlots];
  auto& word = slot % kGroupSlots < 8 ? group.low : group.high;
  const auto shift = slot % 8 * 8;
  const std::uint64_t others = word.load() & ~(std::uint64_t{0xFF} << shift);
  word.store(others | std::uint64_t{value} << shift);
}

std::map<std::string, RouteFields> entries_of(const TableWriter<StdAtomics>& table) {
  std::map<std::string, RouteFields> entries;
  for (std::uint64_t slot = 0; slot < table.slot_count(); ++slot) {
    table.visit_slot(slot, [&](std::string_view id, const RouteFields& route) {
      CHECK_MESSAGE(entries.emplace(id, route).second, "twice in the table: ", id);
    });
  }
  return entries;
}

}  // namespace

TEST_CASE(
    "a table answers like a map through a million changes near its limit, and through its "
    "rebuilds") {
  constexpr int kChanges = 1'000'000;
  const Geometry geometry{256, 0, 1 << 16};
  std::mt19937_64 random(7);
  const std::vector<std::string> ids = mixed_ids(3'950);  // 4,096 slots: about 90 % live
  std::map<std::string, RouteFields> model;
  TableBuffer halves[2] = {TableBuffer(geometry, 11), TableBuffer(geometry, 12)};
  int current = 0;
  std::uint64_t epoch = 0;
  std::uint64_t rebuilds = 0;
  std::uint64_t wrong = 0;
  double most_live = 0;

  // At this load one seed in some dozens makes a chain too long: then another is drawn.
  const auto rebuild = [&] {
    const TableWriter<StdAtomics>& old = halves[current].writer();
    Put worst = Put::chain_too_long;
    for (int attempt = 0; attempt < 10 && worst == Put::chain_too_long; ++attempt) {
      halves[1 - current] = TableBuffer(geometry, random());
      TableWriter<StdAtomics>& next = halves[1 - current].writer();
      worst = Put::inserted;
      for (std::uint64_t slot = 0; slot < old.slot_count(); ++slot) {
        old.visit_slot(slot, [&](std::string_view id, const RouteFields& route) {
          worst = std::max(worst, next.put(id, route));
        });
      }
    }
    wrong += worst != Put::inserted;
    current = 1 - current;
    ++rebuilds;
  };

  for (int i = 0; i < kChanges; ++i) {
    TableWriter<StdAtomics>* table = &halves[current].writer();
    const std::string& id = ids[random() % ids.size()];
    const auto known = model.find(id);
    const auto choice = random() % 100;
    if (choice < 6) {
      const bool too_old = choice == 0;
      const std::uint64_t version =
          known == model.end() ? epoch : known->second.epoch - (too_old ? 1 : 0);
      const bool removed = table->remove(id, version);
      wrong += removed != (known != model.end() && !too_old);
      if (removed) model.erase(known);
    } else {
      const bool stale = choice < 10 && known != model.end();
      RouteFields route =
          active(static_cast<std::uint16_t>(random() % 100), stale ? known->second.epoch : ++epoch);
      if (choice > 95) {
        route.state = State::migrating;
        route.target = 7;
      }
      Put put = table->put(id, route);
      for (int attempt = 0; attempt < 3 && (put == Put::no_room || put == Put::chain_too_long);
           ++attempt) {
        rebuild();
        table = &halves[current].writer();
        put = table->put(id, route);
      }
      wrong += put != (stale                  ? Put::not_newer
                       : known != model.end() ? Put::updated
                                              : Put::inserted);
      if (put == Put::inserted || put == Put::updated) model[id] = route;
    }
    const std::string& other = ids[random() % ids.size()];
    const auto expected = model.find(other);
    wrong += halves[current].writer().find(other) !=
             (expected == model.end() ? RouteFields{} : expected->second);
    wrong += halves[current].writer().live() != model.size();
    most_live = std::max(most_live, static_cast<double>(model.size()) / 4'096);
    if (i % 100'000 == 0) CHECK(entries_of(halves[current].writer()) == model);
  }
  CHECK(wrong == 0);
  CHECK(entries_of(halves[current].writer()) == model);
  CHECK(rebuilds > 0);
  CHECK(most_live > 0.9);
}

TEST_CASE("the rest of a probe chain is found after its first and its middle entries are removed") {
  TableBuffer table(Geometry{8, 0, 64}, kSeed);
  const std::vector<std::string> ids = ids_at_home(50, 8, 3, 5);
  for (const std::string& id : ids) CHECK(table.writer().put(id, active(1, 10)) == Put::inserted);
  CHECK(table.writer().remove(ids[0], 10));
  CHECK(table.writer().remove(ids[25], 10));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool there = i != 0 && i != 25;
    CHECK((table.writer().find(ids[i]).state == State::active) == there);
  }
  CHECK(table.writer().put(ids[25], active(2, 11)) == Put::inserted);
  CHECK(table.writer().find(ids[25]) == active(2, 11));
}

TEST_CASE("a table without an empty slot answers and refuses within its capacity") {
  TableBuffer table(Geometry{4, 0, 64}, kSeed);
  auto& writer = table.writer();
  std::vector<std::string> ids;
  for (int i = 0; i < 64; ++i) ids.push_back("tenant-" + std::to_string(i));
  for (const std::string& id : ids) REQUIRE(writer.put(id, active(1, 1)) == Put::inserted);
  CHECK(writer.live() == writer.slot_count());
  CHECK(writer.put("one-more", active(1, 1)) == Put::no_room);
  CHECK(writer.find("absent").state == State::none);

  for (std::size_t i = 0; i < ids.size(); i += 2)
    CHECK(writer.remove(ids[i], 1));  // half vacant, none empty
  CHECK(writer.find("absent").state == State::none);
  CHECK(writer.vacant() == 32);
  for (int i = 0; i < 32; ++i)
    CHECK(writer.put("new-" + std::to_string(i), active(2, 2)) == Put::inserted);
  CHECK(writer.vacant() == 0);
  CHECK(writer.put("one-more", active(1, 1)) == Put::no_room);
  CHECK(writer.put(ids[1], active(9, 9)) == Put::updated);  // what is there can still change
}

TEST_CASE("ids that begin alike, or are padded alike, are different ids") {
  TableBuffer table(Geometry{16, 0, 4'096}, kSeed);
  std::vector<std::string> ids = {"ab", std::string("ab\0", 3), "abc", "a"};
  for (const std::size_t n : std::initializer_list<std::size_t>{7, 8, 9, 39, 40, 41, 47, 48, 49, 50,
                                                                55, 56, 57, 254, 255}) {
    ids.push_back(std::string(n, 'x'));
    ids.push_back(std::string(n - 1, 'x') + 'y');
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t k = i; k < ids.size(); ++k)
      CHECK(table.writer().find(ids[k]).state == State::none);
    REQUIRE(table.writer().put(ids[i], active(static_cast<std::uint16_t>(i), 1)) == Put::inserted);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(table.writer().find(ids[i]).shard == i);
}

TEST_CASE("an entry changes only for a newer epoch, and is removed only by a version that saw it") {
  TableBuffer table(Geometry{1, 4, 64}, kSeed);
  auto& writer = table.writer();
  CHECK(writer.put("acme", active(1, 5)) == Put::inserted);
  CHECK(writer.put("acme", active(2, 5)) == Put::not_newer);
  CHECK(writer.put("acme", active(2, 4)) == Put::not_newer);
  CHECK(writer.find("acme") == active(1, 5));
  CHECK_FALSE(writer.remove("acme", 4));
  CHECK(writer.find("acme") == active(1, 5));
  CHECK(writer.remove("acme", 5));
  CHECK_FALSE(writer.remove("acme", kAnyVersion));

  CHECK(writer.put_fallback(3, active(1, 5)) == Put::inserted);
  CHECK(writer.put_fallback(3, active(2, 5)) == Put::not_newer);
  CHECK(writer.put_fallback(3, active(2, 6)) == Put::updated);
  CHECK(writer.fallback(3) == active(2, 6));
  CHECK(writer.fallback(2).state == State::none);
}

TEST_CASE("without room for records, what needs none is still served and nothing half-done shows") {
  TableBuffer table(Geometry{2, 1, 5}, kSeed);
  auto& writer = table.writer();
  const std::string long_id(49, 'l');                           // two tail words
  REQUIRE(writer.put(long_id, active(1, 1)) == Put::inserted);  // 3 words left
  const RouteFields moving{State::migrating, 1, 2, 2};
  REQUIRE(writer.put(long_id, moving) == Put::updated);  // 1 word left
  CHECK(writer.records_live() == 4);
  CHECK(writer.put("short", moving) == Put::no_room);
  CHECK(writer.put(std::string(49, 'm'), active(1, 1)) == Put::no_room);
  CHECK(writer.put_fallback(0, moving) == Put::no_room);
  CHECK(writer.find("short").state == State::none);
  CHECK(writer.fallback(0).state == State::none);
  CHECK(writer.put("short", active(1, 1)) == Put::inserted);
  CHECK(writer.put("short", moving) == Put::no_room);
  CHECK(writer.find("short") == active(1, 1));
  CHECK(writer.find(long_id) == moving);
  CHECK(writer.put(long_id, active(2, 3)) == Put::updated);
  CHECK(writer.records_live() == 2);
  CHECK(writer.remove(long_id, 3));
  CHECK(writer.records_live() == 0);
  CHECK(writer.records_end() == 4);  // given out once, never again in this generation
}

TEST_CASE(
    "a chain beyond sixty-four groups is refused by name of the fault, and room elsewhere is "
    "used") {
  constexpr std::uint64_t kGroups = 80;
  TableBuffer table(Geometry{kGroups, 0, 64}, kSeed);
  auto& writer = table.writer();
  const auto ids =
      ids_at_home(kProbeGroupsMax * kGroupSlots + 1, kGroups, 70);  // the chain wraps round
  for (std::size_t i = 0; i + 1 < ids.size(); ++i)
    REQUIRE(writer.put(ids[i], active(1, 1)) == Put::inserted);
  CHECK(table.bytes().header->probe_limit.load() == kProbeGroupsMax);
  CHECK(writer.put(ids.back(), active(1, 1)) == Put::chain_too_long);
  CHECK(writer.find(ids.back()).state == State::none);
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) CHECK(writer.find(ids[i]) == active(1, 1));
  CHECK(writer.put(ids_at_home(1, kGroups, 60).front(), active(2, 2)) == Put::inserted);
}

TEST_CASE("a search ends within the table whatever its header says") {
  TableBuffer table(Geometry{3, 0, 64}, kSeed);
  for (int i = 0; i < 48; ++i)
    REQUIRE(table.writer().put("t" + std::to_string(i), active(1, 1)) == Put::inserted);
  for (const std::uint64_t limit : {std::uint64_t{0}, std::uint64_t{65}, ~std::uint64_t{0}}) {
    table.bytes().header->probe_limit.store(limit);
    CHECK(table.writer().find("absent").state == State::none);
  }
}

TEST_CASE("adoption finds what a writer left, and mends nothing where nothing is broken") {
  TableBuffer table(Geometry{16, 8, 1'024}, kSeed);
  for (const std::string& id : mixed_ids(150))
    REQUIRE(table.writer().put(id, {State::migrating, 1, 2, 3}) == Put::inserted);
  for (const std::string& id : {mixed_ids(150)[3], mixed_ids(150)[77]})
    CHECK(table.writer().remove(id, 3));
  CHECK(table.writer().put_fallback(5, {State::migrating, 3, 4, 5}) == Put::inserted);
  const TableWriter<StdAtomics> before = table.writer();
  const auto entries = entries_of(before);
  auto& after = table.restart();
  CHECK(after.adopt() == 0);
  CHECK(after.live() == before.live());
  CHECK(after.vacant() == before.vacant());
  CHECK(after.records_live() == before.records_live());
  CHECK(after.records_end() == before.records_end());
  CHECK(entries_of(after) == entries);
  CHECK(after.fallback(5) == before.fallback(5));
}

TEST_CASE("adoption mends every kind of slot a writer can leave, and leaves all others alone") {
  const std::string victim = "victim-of-the-crash";
  const std::string victim_long(100, 'v');
  TableBuffer table(Geometry{4, 0, 256}, kSeed);
  auto& writer = table.writer();
  std::map<std::string, RouteFields> rest;
  for (int i = 0; i < 20; ++i) {
    const std::string id =
        i % 2 == 0 ? "tenant-" + std::to_string(i) : std::string(60, 'a') + std::to_string(i);
    rest[id] = active(static_cast<std::uint16_t>(i), 1);
    REQUIRE(writer.put(id, rest[id]) == Put::inserted);
  }
  REQUIRE(writer.put(victim, active(9, 9)) == Put::inserted);
  REQUIRE(writer.put(victim_long, active(9, 9)) == Put::inserted);
  const std::uint64_t slot = slot_of(table, victim);
  const std::uint64_t slot_long = slot_of(table, victim_long);
  auto& bytes = table.bytes().slots[slot];
  const std::uint64_t sequence = slot_sequence(bytes.header.load());
  std::uint64_t lost = 1;
  std::uint64_t mended = 1;

  SUBCASE("dead inside a rewrite of a vacant slot") {
    store_fingerprint(table, slot, kFingerprintVacant);
    bytes.header.store(encode_slot_header(sequence + 1, 0));
    bytes.id[0].store(0x6161616161616161);
  }
  SUBCASE("an odd slot that is still shown") {
    bytes.header.store(encode_slot_header(sequence + 1, victim.size()));
  }
  SUBCASE("rewritten, and its fingerprint not yet stored") {
    store_fingerprint(table, slot, kFingerprintVacant);
    mended = 0;
  }
  SUBCASE("shown under the fingerprint of another id") {
    store_fingerprint(
        table, slot,
        static_cast<std::uint8_t>(0x80 | (home_of(index_hash(victim, kSeed), 4).fingerprint ^ 1)));
    lost = 0;
  }
  SUBCASE("bytes that are no id") {
    bytes.id[0].store(0xFFFFFFFFFFFFFFFF);
  }
  SUBCASE("no length") {
    bytes.header.store(encode_slot_header(sequence, 0));
  }
  SUBCASE("no route") {
    bytes.route.store(kNoRoute);
  }
  SUBCASE("a route whose record lies outside") {
    bytes.route.store(encode_record_reference(State::active, 1 << 20));
  }
  SUBCASE("a long id whose tail lies outside") {
    table.bytes().slots[slot_long].id[StdAtomics::kIdWords - 1].store(~std::uint64_t{0} - 2);
  }

  auto& after = table.restart();
  CHECK(after.adopt() == mended);
  CHECK(after.live() == rest.size() + 2 - lost);
  CHECK(after.vacant() == lost);
  for (const auto& [id, route] : rest) CHECK(after.find(id) == route);
  CHECK((after.find(victim).state != State::none) +
            (after.find(victim_long).state != State::none) ==
        2 - static_cast<int>(lost));
  for (std::uint64_t i = 0; i < after.slot_count(); ++i) {
    if (table.bytes().groups[i / 16].low.load() == 0) continue;
    const auto& group = table.bytes().groups[i / kGroupSlots];
    const std::uint64_t word = i % kGroupSlots < 8 ? group.low.load() : group.high.load();
    const auto fingerprint = static_cast<std::uint8_t>(word >> (i % 8 * 8));
    if (fingerprint != kFingerprintEmpty)
      CHECK_FALSE(is_odd(slot_sequence(table.bytes().slots[i].header.load())));
  }
  CHECK(after.adopt() == 0);  // once is enough

  const std::uint64_t freed_sequence = slot_sequence(bytes.header.load());
  CHECK(freed_sequence >= sequence);  // never goes back
  after.remove(victim, kAnyVersion);
  after.remove(victim_long, kAnyVersion);
  CHECK(after.put(victim, active(3, 99)) == Put::inserted);
  CHECK(after.put(victim_long, active(4, 99)) == Put::inserted);
  CHECK(after.find(victim) == active(3, 99));
  CHECK(after.find(victim_long) == active(4, 99));
}

TEST_CASE("records that a dead writer had taken are never given out again") {
  TableBuffer table(Geometry{2, 0, 64}, kSeed);
  const std::string before(60, 'a');
  REQUIRE(table.writer().put(before, active(1, 1)) == Put::inserted);
  const std::uint64_t end = table.writer().records_end();
  table.bytes().header->records_end.store(end +
                                          7);  // raised, then dead before the record was written
  auto& after = table.restart();
  CHECK(after.adopt() == 0);
  REQUIRE(after.put(std::string(60, 'b'), active(2, 2)) == Put::inserted);
  CHECK(after.records_end() == end + 7 + IdShape<StdAtomics>::tail_words(60));
  CHECK(after.find(before) == active(1, 1));
}

TEST_CASE("no free slot is ever given to two ids") {
  TableBuffer table(Geometry{2, 0, 64}, kSeed);
  auto& writer = table.writer();
  std::mt19937_64 random(3);
  std::map<std::string, std::uint64_t> slots;
  std::uint64_t epoch = 0;
  std::uint64_t shared = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::string id = "t" + std::to_string(random() % 40);
    if (slots.erase(id) != 0) {
      CHECK(writer.remove(id, epoch));
    } else if (writer.put(id, active(1, ++epoch)) == Put::inserted) {
      const std::uint64_t slot = slot_of(table, id);
      for (const auto& [other, taken] : slots) shared += taken == slot;
      slots[id] = slot;
    }
  }
  CHECK(shared == 0);
  CHECK(writer.live() == slots.size());
}
