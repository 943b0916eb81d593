// A reader stands between two of its loads while the writer dies there and the next one takes over,
// and plays the batch again: for every cut of every change, every id, and every pair of loads.
#include <doctest/doctest.h>

#include <functional>

#include "tests/byte_reader.h"
#include "tests/recorded_run.h"
#include "tests/writer_scenarios.h"

namespace fingerpost {
namespace {

// Does something right before the n-th load of a lookup. The writers here use the traced words too,
// which wake nobody: the system calls of sixty-five words a takeover would be most of the run.
class Interruption final : public MemoryModel {
 public:
  Interruption(std::size_t at, std::function<void()> what) : at_(at), what_(std::move(what)) {}

  bool happened() const { return loads_ >= at_; }

  std::uint64_t load(const void* word, std::uint64_t plain, std::memory_order) override {
    if (++loads_ != at_) return plain;
    const ModelInForce unwatched(nullptr);
    what_();
    std::memcpy(&plain, word, sizeof plain);
    return plain;
  }
  bool store(void*, std::size_t, std::uint64_t, std::memory_order) override { return false; }

 private:
  std::size_t at_;
  std::function<void()> what_;
  std::size_t loads_ = 0;
};

// What may be told: anything that was true since the cut.
bool was_true(const RecordedRun& run, std::size_t cut, const std::string& id, const Seen& seen) {
  const auto& truths = run.truths();
  const auto first = static_cast<std::size_t>(&run.old_truth(cut) - truths.data());
  for (std::size_t i = first; i < truths.size(); ++i) {
    if (truths[i].at(id) == seen) return true;
  }
  return false;
}

// `segment` is where it happens: one for all, since its memory costs more than the lookup.
void interrupt_at_every_load(const RecordedRun& run, std::size_t cut, const SmallSegment& image,
                             SmallSegment& segment, const std::string& id, bool replays) {
  for (std::size_t at = 1;; ++at) {
    CAPTURE(at);
    segment = image;
    Interruption interruption(at, [&] {
      auto writer = take_over<TracedAtomics>(segment);
      if (writer.ok() && replays) replay(*writer, run.scenario(), run.first_generation());
    });
    const ModelInForce interrupting(&interruption);
    const Seen seen = tell<TracedAtomics>(segment.readable<TracedAtomics>(), id).seen;
    if (!interruption.happened()) break;
    INFO("read: ", seen);
    CHECK(seen.answer != Answer::undetermined);
    if (replays) {
      CHECK(was_true(run, cut, id, seen));
    } else {
      CHECK((seen == run.old_truth(cut).at(id) || seen == run.new_truth(cut).at(id)));
    }
  }
}

// Wait words, counters and gauges: a takeover adds to them, and no lookup reads them, so a cut
// between two of them is the cut before.
bool is_told_to_nobody(const LoggedStore& store) {
  const std::size_t control = SmallSegment::plan().control_at;
  return store.at >= control + offsetof(ControlBlock<StdAtomics>, version_wait) &&
         store.at < control + offsetof(ControlBlock<StdAtomics>, last_error);
}

TEST_CASE("a takeover between any two loads of a reader shows it the old or the new route") {
  SmallSegment segment;
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (std::size_t cut = 0; cut <= run.stores().size(); ++cut) {
      if (cut > 0 && is_told_to_nobody(run.stores()[cut - 1])) continue;
      CAPTURE(cut);
      const SmallSegment image = run.after(cut);
      for (const std::string& id : scenario.ids) {
        CAPTURE(id);
        interrupt_at_every_load(run, cut, image, segment, id, false);
        interrupt_at_every_load(run, cut, image, segment, id, true);
      }
    }
  }
}

// A reader has found a word that names a record or a tail, and not yet read it, while one writer
// takes the last name of that record away and dies, and the next one writes its first record.
TEST_CASE("a takeover gives no words of records out again, though no entry uses them any more") {
  const Town town;
  Scenario scenario = town.scenario("records that nothing names any more");
  scenario.prelude = {batch(put_rows({{town.dan, migrating(2, 1, 3)}}), 3)};
  scenario.phases = {batch(put_rows({{town.moving, active(3, 4)}, {town.dan, active(3, 4)}}), 4)};
  const RecordedRun run(scenario);
  for (const std::string& id : scenario.ids) {
    CAPTURE(id);
    if (id == town.ben) continue;  // the next writer's own
    for (std::size_t at = 1;; ++at) {
      CAPTURE(at);
      SmallSegment segment = run.first();
      Interruption interruption(at, [&] {
        {
          auto dying = take_over<TracedAtomics>(segment);
          replay(*dying, scenario, run.first_generation());
        }
        auto next = take_over<TracedAtomics>(segment);
        next->put(town.ben, migrating(3, 0, 5));
      });
      const ModelInForce interrupting(&interruption);
      const Seen seen = tell<TracedAtomics>(segment.readable<TracedAtomics>(), id).seen;
      if (!interruption.happened()) break;
      INFO("read: ", seen);
      CHECK(was_true(run, 0, id, seen));
    }
  }
}

TEST_CASE(
    "a takeover mends what no writer leaves: a wrong fingerprint, a slot odd under its "
    "fingerprint") {
  const Town town;
  Scenario scenario = town.scenario("bytes changed by hand");
  scenario.phases = {batch(put_rows({{town.dan, active(3, 3)}}), 3)};
  const RecordedRun run(scenario);
  const SmallSegment whole = run.after(run.stores().size());
  const ByteReader before(whole.bytes());
  std::uint64_t mended = 0;
  for (std::uint64_t slot = 0; slot < before.slot_count(); ++slot) {
    if (before.fingerprint(slot) < 0x80) continue;
    CAPTURE(slot);
    const std::string id = before.id_of(slot);
    {
      SmallSegment segment = whole;
      auto* fingerprint = segment.bytes().data() + SmallSegment::plan().half_at[0] + 4096 + slot;
      *fingerprint ^= std::byte{0x11};
      auto writer = take_over<TracedAtomics>(segment);
      REQUIRE(writer.ok());
      CHECK(ByteReader(segment.bytes()).problems() == std::vector<std::string>{});
      CHECK(ask(segment, id) == run.last_truth().at(id));
    }
    {
      SmallSegment segment = whole;
      auto* header =
          segment.bytes().data() + SmallSegment::plan().half_at[0] + 4096 + 64 + slot * 64 + 8;
      std::uint64_t word = 0;
      std::memcpy(&word, header, 8);
      word += std::uint64_t{1} << 16;  // odd, the length kept
      std::memcpy(header, &word, 8);
      auto writer = take_over<TracedAtomics>(segment);
      REQUIRE(writer.ok());
      const ByteReader bytes(segment.bytes());
      CHECK(bytes.problems() == std::vector<std::string>{});
      CHECK(bytes.fingerprint(slot) == 1);
      CHECK(bytes.sequence(slot) > (word >> 16) + 1);
      CHECK(bytes.is_blank(slot));
    }
    ++mended;
  }
  CHECK(mended == run.last_truth().overrides.size());
}

}  // namespace
}  // namespace fingerpost
