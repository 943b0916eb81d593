// Comparing everything that is served with the directory at one version, in slices: what a missed
// event, a dropped trigger or a row restored by hand left behind.
//
// What the directory has and the segment lacks, and the other way round, comes back as a batch to
// be applied through the guard. A row that differs without a newer epoch cannot be applied (epochs
// no longer tell which is later): the directory has another history then, in all but its nonce.
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "syncer/row_sink.h"
#include "syncer/source.h"

namespace fingerpost {

class Reconcile {
 public:
  // Rows in `quarantine` differ for reasons that are known.
  Reconcile(std::unique_ptr<FullRead> read, OwnedSegment& segment, const Quarantine& quarantine);

  // Goes on for about `budget`. true: everything was compared. conflict: the generation was
  // switched meanwhile, so begin again.
  Result<bool> step(std::chrono::nanoseconds budget);

  // How many entries differ, once step() has said true; what to apply, which is nothing if they
  // can't be applied.
  std::uint64_t differences() const { return differences_; }
  bool needs_reload() const { return needs_reload_; }
  Batch& repair();

 private:
  void compare(const EntryRow& row);
  void compare(const SplitRow& split);
  void look_for_extra(std::uint64_t slot);

  std::unique_ptr<FullRead> read_;
  OwnedSegment& segment_;
  const Quarantine& quarantine_;
  std::uint64_t generation_;
  std::vector<bool> seen_;  // slots whose entry the directory has
  bool rows_compared_ = false;
  bool read_to_end_ = false;
  std::uint64_t next_slot_ = 0;
  std::uint64_t differences_ = 0;
  bool needs_reload_ = false;
  Batch repair_;
};

}  // namespace fingerpost
