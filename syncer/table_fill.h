// Filling a generation that nobody reads yet, in slices: from the directory, from a snapshot, or
// from the segment that is to be superseded. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "syncer/row_sink.h"
#include "syncer/snapshot_reader.h"
#include "syncer/source.h"

namespace fingerpost {

class TableFill {
 public:
  virtual ~TableFill() = default;

  // Goes on for at most about `budget`. true: everything is in. no_space: the generation is too
  // small for the records of its ids (begin again with more); any other error: the origin failed,
  // or is not acceptable.
  virtual Result<bool> step(std::chrono::nanoseconds budget) = 0;
  // For progress: of how many rows how many are in.
  std::uint64_t done() const { return done_; }
  std::uint64_t total() const { return total_; }
  // How a snapshot was read; of other origins nothing.
  virtual IoStats io_stats() const { return {}; }

 protected:
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
};

// What a generation for `read` needs. `record_words` is what an earlier attempt has found too
// small, or 0.
TableNeeds needs_of(const FullRead& read, std::uint64_t record_words);
TableNeeds needs_of(const SnapshotInfo& snapshot, std::uint64_t record_words);

// All three expect that begin_load() was called on the target, with these needs.
std::unique_ptr<TableFill> fill_from_read(FullRead& read, RowSink& sink);
Result<std::unique_ptr<TableFill>> fill_from_snapshot(std::unique_ptr<SnapshotReader> reader,
                                                      RowSink& sink);
// conflict if `from` switches generations meanwhile: its slots are other slots then.
Result<std::unique_ptr<TableFill>> fill_from_segment(OwnedSegment& from, OwnedSegment& to);

}  // namespace fingerpost
