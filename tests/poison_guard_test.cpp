#include "syncer/poison_guard.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/segment_buffer.h"

using namespace fingerpost;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A served table of `count` tenants on shard "a", ids t0, t1, …, and a shard "b" to go to.
struct Served {
  explicit Served(std::uint64_t count) : buffer(count + 100), writer(make(count)) {}

  SegmentWriter<StdAtomics> make(std::uint64_t count) {
    auto made = SegmentWriter<StdAtomics>::initialise(buffer.writable(), buffer.reserve());
    REQUIRE(
        made.add_shards(
                {ShardSpec{
                     .name = "a", .primary = "", .replicas = {}, .region = "", .attributes = {}},
                 ShardSpec{
                     .name = "b", .primary = "", .replicas = {}, .region = "", .attributes = {}}})
            .ok());
    REQUIRE(made.begin_load({count, 0, FallbackKind::buckets, 8}, 7, 1, false).ok());
    for (std::uint64_t i = 0; i < count; ++i) {
      REQUIRE(made.load("t" + std::to_string(i), {State::active, 0, kNoShard, 1}) ==
              Applied::changed);
    }
    for (std::uint64_t i = 0; i < 8; ++i) made.load_fallback(i, {State::active, 0, kNoShard, 1});
    made.switch_generation();
    return made;
  }

  SegmentBuffer buffer;
  SegmentWriter<StdAtomics> writer;
};

struct Change {
  Batch batch;
  Change() {
    batch.layout.fallback = Fallback::buckets;
    batch.layout.buckets = 8;
  }
  Change& row(const std::string& id, std::string_view shard, std::string_view state,
              bool by_verb = false) {
    batch.rows.push_back({batch.keep(id), shard, state, {}, 2, by_verb});
    return *this;
  }
  Change& rows(std::uint64_t count, std::string_view shard, std::string_view state,
               bool by_verb = false) {
    for (std::uint64_t i = 0; i < count; ++i) row("t" + std::to_string(i), shard, state, by_verb);
    return *this;
  }
};

std::uint64_t withheld(Served& served, Change& change, std::int64_t now = 0) {
  PoisonGuard guard;
  Quarantine quarantine;
  const std::uint64_t count = guard.screen(change.batch, served.writer, quarantine, now);
  CHECK(quarantine.count_of(kWhyWithheld) == count);
  return count;
}

}  // namespace

TEST_CASE("ten owners may be changed by plain SQL at once, eleven wait") {
  Served served(100);
  Change ten;
  CHECK(withheld(served, ten.rows(10, "b", "ACTIVE")) == 0);
  CHECK(ten.batch.rows.size() == 10);
  Change eleven;
  CHECK(withheld(served, eleven.rows(11, "b", "ACTIVE")) == 11);
  CHECK(eleven.batch.rows.empty());
}

TEST_CASE("of many entries half a percent may change") {
  Served served(4'000);
  Change few;
  CHECK(withheld(served, few.rows(20, "b", "ACTIVE")) == 0);
  Change many;
  CHECK(withheld(served, many.rows(21, "b", "ACTIVE")) == 21);
}

TEST_CASE("deletions and buckets that change their owner count as well") {
  Served served(100);
  Change deleted;
  CHECK(withheld(served, deleted.rows(100, "a", "DELETED")) == 100);
  Change mixed;
  mixed.rows(6, "a", "DELETED");
  for (int i = 0; i < 5; ++i) mixed.row("bucket:" + std::to_string(i), "b", "ACTIVE");
  CHECK(withheld(served, mixed) == 11);
}

TEST_CASE("what verbs recorded, additions, FROZEN and MIGRATING are never withheld") {
  Served served(100);
  Change verbs;
  CHECK(withheld(served, verbs.rows(100, "b", "ACTIVE", true)) == 0);
  Change frozen;
  CHECK(withheld(served, frozen.rows(50, "a", "FROZEN").rows(50, "a", "MIGRATING")) == 0);
  Change added;
  for (int i = 0; i < 50; ++i) added.row("new" + std::to_string(i), "b", "ACTIVE");
  CHECK(withheld(served, added) == 0);
}

TEST_CASE("only the suspicious rows of a batch wait") {
  Served served(100);
  Change change;
  change.rows(20, "b", "ACTIVE").row("new", "b", "ACTIVE").row("t50", "a", "FROZEN");
  CHECK(withheld(served, change) == 20);
  REQUIRE(change.batch.rows.size() == 2);
  CHECK(change.batch.rows[0].id == "new");
  CHECK(change.batch.rows[1].id == "t50");
}

TEST_CASE("an approval lets through what is not newer than the version it names") {
  Served served(100);
  Change change;
  change.batch.approved = 1;
  CHECK(withheld(served, change.rows(50, "b", "ACTIVE")) == 50);
  Change approved;
  approved.batch.approved = 2;
  CHECK(withheld(served, approved.rows(50, "b", "ACTIVE")) == 0);
}

TEST_CASE("a slow trickle within one minute is a flood, and after the minute it is not") {
  Served served(100);
  PoisonGuard guard;
  Quarantine quarantine;
  for (int i = 0; i < 10; ++i) {
    Change one;
    one.row("t" + std::to_string(i), "b", "ACTIVE");
    CHECK(guard.screen(one.batch, served.writer, quarantine, i * kSecond) == 0);
  }
  Change eleventh;
  eleventh.row("t10", "b", "ACTIVE");
  CHECK(guard.screen(eleventh.batch, served.writer, quarantine, 10 * kSecond) == 1);
  Change later;
  later.row("t10", "b", "ACTIVE");
  CHECK(guard.screen(later.batch, served.writer, quarantine, 100 * kSecond) == 0);
}

TEST_CASE("removals without a verb count, removals by a verb do not") {
  Served served(100);
  Change change;
  for (int i = 0; i < 11; ++i)
    change.batch.removals.push_back({change.batch.keep("t" + std::to_string(i)), 2, false});
  CHECK(withheld(served, change) == 11);
  CHECK(change.batch.removals.empty());
  Change verbs;
  for (int i = 0; i < 11; ++i)
    verbs.batch.removals.push_back({verbs.batch.keep("t" + std::to_string(i)), 2, true});
  CHECK(withheld(served, verbs) == 0);
  CHECK(verbs.batch.removals.size() == 11);
}

TEST_CASE("what a reload would take away is counted against what is served") {
  Served served(100);
  Served same(100);
  CHECK(PoisonGuard::differences(served.writer.table(), same.writer.table()) == 0);
  Served fewer(97);
  CHECK(PoisonGuard::differences(served.writer.table(), fewer.writer.table()) == 3);
  CHECK(PoisonGuard::differences(fewer.writer.table(), served.writer.table()) == 0);
  REQUIRE(same.writer.put("t1", {State::active, 1, kNoShard, 2}) == Applied::changed);
  REQUIRE(same.writer.put_fallback(3, {State::active, 1, kNoShard, 2}) == Applied::changed);
  CHECK(PoisonGuard::differences(served.writer.table(), same.writer.table()) == 2);
}
