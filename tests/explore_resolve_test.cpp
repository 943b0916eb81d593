// The whole of a lookup beside the whole of a writer: every mixture of the writer's stores that the
// C++ memory model allows a reader to see (tests/reader_explorer.h), on the functions that ship.
#include <doctest/doctest.h>

#include <sstream>

#include "tests/reader_explorer.h"
#include "tests/recorded_run.h"
#include "tests/writer_scenarios.h"

namespace fingerpost {
namespace {

// The segment's memory as resolve asks for it, with a checkpoint at the beginning of each pass:
// there a lookup knows the root it has loaded and how many passes went before, and nothing else.
class ExploredMemory {
 public:
  ExploredMemory(const SegmentMemory<TracedAtomics, false>& memory, ReaderExplorer& explorer)
      : memory_(memory), explorer_(explorer) {}

  const SegmentMemory<TracedAtomics, false>& whole() const { return memory_; }
  // `context`: all that the reader's program will remember of what it did before this lookup.
  void begin_lookup(std::vector<std::uint64_t> context) {
    context_ = std::move(context);
    passes_ = 0;
  }

  const TracedAtomics::Word& root() const noexcept { return memory_.root(); }
  HalfView<TracedAtomics> half_view(unsigned half) const noexcept {
    std::vector<std::uint64_t> local = context_;
    local.push_back(++passes_);
    local.push_back(explorer_.last_loaded());
    explorer_.checkpoint(std::move(local));
    return memory_.half_view(half);
  }

 private:
  SegmentMemory<TracedAtomics, false> memory_;
  ReaderExplorer& explorer_;
  std::vector<std::uint64_t> context_;
  mutable std::uint64_t passes_ = 0;
};

// What one reader does, and what it must not be told: something that was never true, or something
// older than what it knows already.
class WatchedReader {
 public:
  WatchedReader(const ExploredMemory& memory, const std::vector<Truth>& truths,
                const std::vector<std::string>& ids)
      : memory_(memory), truths_(truths) {
    for (const std::string& id : ids) {
      for (const Truth& truth : truths) seen_by_truth_[id].push_back(truth.at(id));
    }
  }

  void begin() {
    since_ = 0;
    steps_ = 0;
    wrong_.clear();
  }
  bool is_right() const { return wrong_.empty(); }
  const std::string& wrong() const { return wrong_; }

  // The published version: whoever knows it is told at least what it promises.
  void read_position() {
    const auto words = read_pair(memory_.whole().control().position);
    if (!words) return fail("the position was disturbed");
    const Position position{(*words)[0], (*words)[1], (*words)[2], (*words)[3]};
    advance([&](std::size_t i) { return truths_[i].position == position; },
            "the position is of no moment");
  }

  void look_up(const std::string& id, bool long_way = false) {
    memory_.begin_lookup({++steps_, since_});
    const Seen seen = tell<TracedAtomics>(memory_, id, long_way).seen;
    const auto& list = seen_by_truth_.at(id);
    advance([&](std::size_t i) { return list[i] == seen; },
            [&] {
              std::ostringstream text;
              text << id << ": " << seen << " after moment " << since_;
              return text.str();
            });
    check_shards(seen.route);
    for (const RouteFields& part : seen.parts) check_shards(part);
  }

  // Between ids a batch is not one moment: some of its rows may be seen before others.
  void turn_to_another_id() {
    if (since_ > 0) --since_;
  }

 private:
  template <class Holds, class Text>
  void advance(Holds&& holds, Text&& text) {
    std::size_t i = since_;
    while (i < truths_.size() && !holds(i)) ++i;
    if (i == truths_.size()) {
      if constexpr (std::is_invocable_v<Text>) {
        fail(text());
      } else {
        fail(text);
      }
      return;
    }
    since_ = i;
  }

  void check_shards(const RouteFields& route) {
    check_shard(route.shard);
    check_shard(route.target);
  }
  // A route's shards are there: their topology was published before it.
  void check_shard(std::uint16_t shard) {
    if (shard == kNoShard) return;
    const ShardView view = memory_.whole().topology().shard(shard);
    if (!view || view.name() != "s" + std::to_string(shard)) {
      fail("shard " + std::to_string(shard) + " has the name '" + std::string(view.name()) + "'");
    }
    if (memory_.whole().topology().shard_count() <= shard)
      fail("a route names a shard that is not counted");
  }

  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  ExploredMemory memory_;
  const std::vector<Truth>& truths_;
  std::map<std::string, std::vector<Seen>> seen_by_truth_;
  std::uint64_t steps_ = 0;
  std::size_t since_ = 0;  // the earliest moment that what was told fits to
  std::string wrong_;
};

// Every execution of `act` beside `stores` on the bytes `first`.
template <class Act>
std::uint64_t explore(const RecordedRun& run, const SmallSegment& first,
                      const std::vector<LoggedStore>& stores, Act&& act) {
  SmallSegment segment = first;
  ReaderExplorer explorer(segment.bytes(), stores);
  WatchedReader reader(ExploredMemory(segment.readable<TracedAtomics>(), explorer), run.truths(),
                       run.scenario().ids);
  const std::uint64_t executions = explorer.explore([&] {
    reader.begin();
    act(reader);
    return explorer.is_pruned() || reader.is_right();
  });
  INFO("told ", reader.wrong());
  CHECK((explorer.is_pruned() || reader.is_right()));
  CHECK(!explorer.reader_stored());
  return executions;
}

TEST_CASE("a lookup, and one after it, tell what was true, and nothing older the second time") {
  std::uint64_t executions = 0;
  for (const Scenario& scenario : all_scenarios()) {
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (const std::string& id : scenario.ids) {
      CAPTURE(id);
      for (const bool long_way : {false, true}) {
        executions += explore(run, run.first(), run.stores(), [&](WatchedReader& reader) {
          reader.look_up(id, long_way);
          reader.look_up(id, long_way);
        });
      }
    }
  }
  MESSAGE(executions << " executions");
}

TEST_CASE("who has read a version is told at least what it promises") {
  constexpr std::size_t kPhasesMax = 6;  // each position published multiplies the executions
  std::uint64_t executions = 0;
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.phases.size() > kPhasesMax) continue;
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (const std::string& id : scenario.ids) {
      CAPTURE(id);
      executions += explore(run, run.first(), run.stores(), [&](WatchedReader& reader) {
        reader.read_position();
        reader.look_up(id);
      });
    }
  }
  MESSAGE(executions << " executions");
}

// The dead writer's stores up to the cut, the takeover's, and those of the batches played again:
// one writer after the other, each of which has seen all that was there.
TEST_CASE("a lookup beside a takeover and its replay tells what was true, at every cut") {
  constexpr std::size_t kPhasesMax = 6;
  std::uint64_t executions = 0;
  for (const Scenario& scenario : all_scenarios()) {
    if (scenario.phases.size() > kPhasesMax) continue;
    CAPTURE(scenario.name);
    const RecordedRun run(scenario);
    for (std::size_t cut = 1; cut <= run.stores().size(); ++cut) {
      if (run.stores()[cut - 1].at < SmallSegment::plan().half_at[0]) continue;
      CAPTURE(cut);
      SmallSegment image = run.after(cut);
      StoreLog next(image.bytes());
      {
        const ModelInForce recording(&next);
        auto writer = take_over<TracedAtomics>(image);
        REQUIRE(writer.ok());
        replay(*writer, scenario, run.first_generation());
      }
      std::vector<LoggedStore> stores(run.stores().begin(),
                                      run.stores().begin() + static_cast<std::ptrdiff_t>(cut));
      stores.insert(stores.end(), next.stores().begin(), next.stores().end());
      for (const std::string& id : scenario.ids) {
        CAPTURE(id);
        executions +=
            explore(run, run.first(), stores, [&](WatchedReader& reader) { reader.look_up(id); });
      }
    }
  }
  MESSAGE(executions << " executions");
}

}  // namespace
}  // namespace fingerpost
