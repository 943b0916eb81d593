// A scenario played once by the writer that ships, over recording words: the bytes before it, its
// stores, and the bytes after any prefix of them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/store_log.h"
#include "tests/writer_scenario.h"

namespace fingerpost {

class RecordedRun {
 public:
  explicit RecordedRun(const Scenario& scenario)
      : scenario_(scenario), truths_(scenario.truths()), log_(segment_.bytes()) {
    auto writer = lay_out<TracedAtomics>(segment_, scenario);
    first_ = segment_;
    const ModelInForce recording(&log_);
    for (std::size_t i = 0; i < scenario.phases.size(); ++i) {
      log_.begin_step(i);
      perform(writer, scenario.phases[i]);
    }
  }
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  const Scenario& scenario() const { return scenario_; }
  const StoreLog& log() const { return log_; }
  const std::vector<LoggedStore>& stores() const { return log_.stores(); }
  const SmallSegment& first() const { return first_; }
  std::uint64_t first_generation() const {
    return root_generation(first_.readable<TracedAtomics>().root().load(kAcquire));
  }
  const Truth& last_truth() const { return truths_.back(); }
  const std::vector<Truth>& truths() const { return truths_; }

  // The bytes after the first `cut` stores.
  SmallSegment after(std::size_t cut) const {
    SmallSegment image = first_;
    for (std::size_t i = 0; i < cut; ++i) apply_store(image.bytes(), stores()[i]);
    return image;
  }
  // What was true before, and what is true after, the phase in which the cut lies.
  const Truth& old_truth(std::size_t cut) const { return truths_[step_at(cut)]; }
  const Truth& new_truth(std::size_t cut) const { return truths_[step_at(cut) + 1]; }

 private:
  std::size_t step_at(std::size_t cut) const {
    return stores()[std::min(cut, stores().size() - 1)].step;
  }

  const Scenario scenario_;
  const std::vector<Truth> truths_;
  SmallSegment segment_;
  SmallSegment first_;
  StoreLog log_;
};

// A writer that knows nothing but the bytes.
template <class A>
Result<SegmentWriter<A>> take_over(SmallSegment& segment) {
  return SegmentWriter<A>::adopt(segment.writable<A>(), reserve_nothing());
}

// Goes on with the scenario as a syncer does: batches after the published position, and from its
// beginning a generation whose switch did not happen, with what changed meanwhile.
template <class A>
void replay(SegmentWriter<A>& writer, const Scenario& scenario, std::uint64_t first_generation) {
  const Position at = writer.position();
  std::uint64_t turned = writer.generation() - first_generation;
  bool building = false;
  for (const Phase& phase : scenario.phases) {
    const bool begins =
        phase.kind == Phase::Kind::begin_copy || phase.kind == Phase::Kind::begin_load;
    building |= begins;
    const auto& position = phase.rows.position;
    const bool is_new = building ? turned == 0
                                 : !position || position->incarnation != at.incarnation ||
                                       position->version > at.version;
    if (is_new) perform(writer, phase);
    if (phase.kind != Phase::Kind::switch_over) continue;
    building = false;
    if (turned > 0) --turned;
  }
}

inline Seen ask(const SmallSegment& segment, const std::string& question) {
  return tell<StdAtomics>(segment.readable<StdAtomics>(), question).seen;
}

}  // namespace fingerpost
