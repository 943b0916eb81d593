// Writing a snapshot of a live table in slices, between applies: the scan plus the tail of what was
// applied during it. As a whole it equals the directory at the version it ends at. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "syncer/batch.h"
#include "syncer/row_sink.h"
#include "syncer/snapshot_store.h"

namespace fingerpost {

class SnapshotTask {
 public:
  // Begins at the segment's current generation.
  static Result<std::unique_ptr<SnapshotTask>> begin(SnapshotStore& store, OwnedSegment& segment);

  // Goes on for about `budget`. true: the snapshot is on the disk under its name. `end` says where
  // the data stands now. conflict: the generation was switched, so the scan is worth nothing; begin
  // again.
  Result<bool> step(std::chrono::nanoseconds budget, const SnapshotEnd& end);

  // Whatever `batch` changed goes into the tail; called after it was applied.
  Status note(const Batch& batch);

  const std::string& path() const { return writer_->path(); }
  std::uint64_t version() const { return version_; }
  const IoStats& io_stats() const { return writer_->io_stats(); }

 private:
  SnapshotTask(OwnedSegment& segment, std::unique_ptr<SnapshotWriter> writer)
      : segment_(segment), writer_(std::move(writer)), generation_(segment.writer().generation()) {}

  Status append_bucket(std::uint64_t index);
  // What the table says of an entry now, be it split or not.
  Status append_entry(std::string_view id, const RouteFields& route);
  // Where a shard stands in the snapshot's topology; a shard that is first named here is added.
  std::uint32_t place(std::uint16_t shard);
  std::vector<ShardSpec> topology() const;

  OwnedSegment& segment_;
  std::unique_ptr<SnapshotWriter> writer_;
  std::uint64_t generation_;
  std::uint64_t next_slot_ = 0;
  std::uint64_t next_bucket_ = 0;
  std::uint64_t version_ = 0;
  bool sealed_ = false;
  std::vector<std::uint16_t> shards_;  // by place
  std::vector<std::uint32_t> places_;  // by shard
};

}  // namespace fingerpost
