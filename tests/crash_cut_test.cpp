// The writer dies after any of its stores. Every store is a release, so what an acquiring reader or
// the next writer can see at rest is a prefix of them (tests/README.md): each prefix is laid out as
// bytes, read, taken over by a writer that knows nothing else, and the batch is played again.
#include <doctest/doctest.h>

#include "tests/byte_reader.h"
#include "tests/recorded_run.h"
#include "tests/writer_scenarios.h"

namespace fingerpost {
namespace {

// Counts the loads of a lookup.
class LoadCounter final : public MemoryModel {
 public:
  std::size_t loads = 0;

  std::uint64_t load(const void*, std::uint64_t plain, std::memory_order) override {
    ++loads;
    return plain;
  }
  bool store(void*, std::size_t, std::uint64_t, std::memory_order) override { return false; }
};

// One pass over a table of up to four groups: root twice, header seven, rule twice and its kind, a
// record's two; a group is two words and sixteen slots of at most 9 words and a tail of 27.
// Of all parts: three more and two for each.
constexpr std::size_t kPartsShown = 4;
constexpr std::size_t kLoadsMax = 14 + 4 * (2 + 16 * (9 + 27)) + 3 + 2 * kPartsShown;

void check_reads(const RecordedRun& run, const SmallSegment& image, std::size_t cut) {
  const ByteReader bytes(image.bytes());
  for (const std::string& id : run.scenario().ids) {
    CAPTURE(id);
    const Seen at_rest = bytes.at(id);
    const Seen before = run.old_truth(cut).at(id);
    const Seen after = run.new_truth(cut).at(id);
    INFO("old: ", before, "\nnew: ", after, "\nread: ", at_rest);
    CHECK((at_rest == before || at_rest == after));
    LoadCounter counter;
    const ModelInForce counting(&counter);
    const Told told = tell<TracedAtomics>(image.readable<TracedAtomics>(), id);
    CHECK(told.seen == at_rest);
    CHECK(told.resolution.passes == 1);
    CHECK(counter.loads <= kLoadsMax);
  }
}

// The position and the shards at rest.
void check_rest(const RecordedRun& run, const SmallSegment& image, std::size_t cut) {
  const ByteReader bytes(image.bytes());
  const Truth& before = run.old_truth(cut);
  const Truth& after = run.new_truth(cut);
  const Position position = bytes.position();
  CHECK((position == before.position || position == after.position));
  if (position != before.position) {  // a version is published after the last of its rows
    for (const std::string& id : run.scenario().ids) CHECK(bytes.at(id) == after.at(id));
  }
  const auto topology = image.readable<StdAtomics>().topology();
  for (std::uint64_t i = 0; i < topology.shard_count(); ++i) {
    CHECK(topology.shard(i).name() == "s" + std::to_string(i));
  }
  for (const std::string& id : run.scenario().ids) {
    const Seen seen = bytes.at(id);
    std::vector<RouteFields> routes = seen.parts;
    routes.push_back(seen.route);
    for (const RouteFields& route : routes) {
      if (route.shard != kNoShard) CHECK(topology.shard(route.shard));
      if (route.target != kNoShard) CHECK(topology.shard(route.target));
    }
  }
}

void check_taken_over(const RecordedRun& run, const SmallSegment& cut_image) {
  SmallSegment image = cut_image;
  const ByteReader before(cut_image.bytes());
  // As a reader may hold them for as long as the mapping lasts.
  std::vector<std::pair<ShardView, ShardSpec>> held;
  const auto topology = image.readable<StdAtomics>().topology();
  for (std::uint64_t i = 0; i < topology.shard_count(); ++i) {
    held.emplace_back(topology.shard(i), to_spec(topology.shard(i)));
  }
  auto writer = take_over<StdAtomics>(image);
  REQUIRE(writer.ok());
  const ByteReader bytes(image.bytes());
  CHECK(bytes.problems() == std::vector<std::string>{});
  CHECK(bytes.records_end() == before.records_end());
  CHECK(bytes.version_wait() != before.version_wait());
  for (std::size_t i = 0; i < kPlacementWaits; ++i) {
    CHECK(bytes.placement_wait(i) != before.placement_wait(i));
  }
  for (const std::string& id : run.scenario().ids) CHECK(bytes.at(id) == before.at(id));
  for (std::uint64_t slot = 0; slot < bytes.slot_count(); ++slot) {
    if (before.fingerprint(slot) == 0 || (before.sequence(slot) & 1) == 0) continue;
    // Half-written: rewritten whole, under a sequence that no reader has met.
    CHECK(bytes.sequence(slot) > before.sequence(slot) + 1);
    CHECK(bytes.is_blank(slot));
    CHECK(bytes.fingerprint(slot) == 1);
  }
  replay(*writer, run.scenario(), run.first_generation());
  const ByteReader done(image.bytes());
  CHECK(done.problems() == std::vector<std::string>{});
  for (const std::string& id : run.scenario().ids) {
    CAPTURE(id);
    CHECK(done.at(id) == run.last_truth().at(id));
    CHECK(ask(image, id) == run.last_truth().at(id));
  }
  CHECK(done.position() == run.last_truth().position);
  for (const auto& [view, spec] : held) CHECK(to_spec(view) == spec);
  check_rest(run, image, run.stores().size());
}

TEST_CASE("a writer stores only with release and loads only with acquire, whatever it does") {
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    CHECK(run.stores().size() > 0);
    CHECK(run.log().out_of_order() == 0);
  }
  CHECK(RecordedRun(superseding(Town())).log().out_of_order() == 0);
}

TEST_CASE("at every cut of every change each id shows its old or its new route in one pass") {
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (std::size_t cut = 0; cut <= run.stores().size(); ++cut) {
      CAPTURE(cut);
      const SmallSegment image = run.after(cut);
      check_reads(run, image, cut);
      check_rest(run, image, cut);
    }
    const SmallSegment last = run.after(run.stores().size());
    for (const std::string& id : scenario.ids) {
      CAPTURE(id);
      CHECK(ByteReader(last.bytes()).at(id) == run.last_truth().at(id));
    }
  }
}

TEST_CASE(
    "a writer that has only the bytes of a cut goes on, and the batch played again is whole") {
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (std::size_t cut = 0; cut <= run.stores().size(); ++cut) {
      CAPTURE(cut);
      check_taken_over(run, run.after(cut));
    }
  }
}

TEST_CASE("a takeover that dies in its own repairs leaves what another one takes over") {
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (std::size_t cut = 0; cut <= run.stores().size(); ++cut) {
      CAPTURE(cut);
      SmallSegment repaired = run.after(cut);
      StoreLog repairs(repaired.bytes());
      {
        const ModelInForce recording(&repairs);
        REQUIRE(take_over<TracedAtomics>(repaired).ok());
      }
      CHECK(repairs.out_of_order() == 0);
      SmallSegment image = run.after(cut);
      for (const LoggedStore& store : repairs.stores()) {
        apply_store(image.bytes(), store);
        // What no lookup reads cannot change its answer: wait words and counters.
        if (store.at < SmallSegment::plan().half_at[0]) continue;
        check_reads(run, image, cut);
        check_taken_over(run, image);
      }
    }
  }
}

TEST_CASE("a superseded segment answers as before at every cut, and is taken over by nobody") {
  const RecordedRun run(superseding(Town()));
  bool was_marked = false;
  for (std::size_t cut = 0; cut <= run.stores().size(); ++cut) {
    CAPTURE(cut);
    SmallSegment image = run.after(cut);
    check_reads(run, image, cut);
    check_rest(run, image, cut);
    const bool marked = root_superseded(ByteReader(image.bytes()).root());
    CHECK(marked >= was_marked);
    was_marked = marked;
    if (marked) CHECK(take_over<StdAtomics>(image).status().code() == Code::conflict);
  }
  CHECK(was_marked);
}

TEST_CASE("the words that waiters sleep on grow after the last store of what they announce") {
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (const std::string& id : scenario.ids) {
      CAPTURE(id);
      Seen before = ByteReader(run.first().bytes()).at(id);
      std::uint32_t word = 0;
      std::size_t changed_at = 0;
      std::size_t bumped_at = 0;
      const std::size_t wait = placement_hash(tenant_of(id)) % kPlacementWaits;
      for (std::size_t cut = 0; cut <= run.stores().size(); ++cut) {
        const SmallSegment image = run.after(cut);
        const ByteReader bytes(image.bytes());
        if (bytes.at(id) != before) changed_at = cut;
        if (bytes.placement_wait(wait) != word) bumped_at = cut;
        before = bytes.at(id);
        word = bytes.placement_wait(wait);
      }
      if (changed_at != 0) CHECK(bumped_at > changed_at);
    }
  }
}

TEST_CASE("each bump of a wait word is followed by its wake, never the other way round") {
  const RecordedRun run(whole_batch(Town()));
  CHECK(!run.log().wakes().empty());
  for (const StoreLog::Wake& wake : run.log().wakes()) {
    REQUIRE(wake.stores > 0);
    CHECK(run.stores()[wake.stores - 1].at == wake.at);
  }
}

}  // namespace
}  // namespace fingerpost
