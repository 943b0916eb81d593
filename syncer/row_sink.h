// Rows into one segment: judged, translated and stored, by whichever way there is room.
//
// One for each segment that takes changes. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "shm/owned_segment.h"
#include "syncer/batch.h"
#include "syncer/quarantine.h"
#include "syncer/row_route.h"
#include "syncer/split_route.h"

namespace fingerpost {

// A random seed for a generation's index hash.
std::uint64_t draw_seed();

FallbackKind to_kind(Fallback fallback);
std::uint64_t fallback_count(const DirectoryLayout& layout);

class RowSink {
 public:
  // `alive` is called between the slices of whatever takes long: the heartbeat.
  RowSink(OwnedSegment& segment, Quarantine& quarantine, std::function<void()> alive)
      : segment_(segment), quarantine_(quarantine), alive_(std::move(alive)) {}

  // A batch in the order that shows no id a route it never had; does not publish its version. What
  // finds no room is quarantined. no_space: the topology is full; nothing but some shards was
  // stored, the version must not be published.
  Status apply(const Batch& batch);

  // One row of a whole read or a snapshot into the generation under construction.
  Status load(const EntryRow& row, const DirectoryLayout& layout);
  Status load(const SplitRow& split);

  // The fixed list of a hash directory into the generation under construction.
  void load_hash_list(const DirectoryLayout& layout);

  // Makes room for what the table is known to need, now, in slices with `alive` in between.
  Status grow(const TableNeeds& extra);

  // Why the last batch found no memory to grow; ok if it did not need to.
  const Status& growth_refused() const { return growth_refused_; }

  SegmentWriter<StdAtomics>& writer() { return segment_.writer(); }

 private:
  // Those of buckets, or all others.
  void apply_rows(const Batch& batch, bool of_buckets);
  void apply_row(const EntryRow& row, const RowPlace& place);
  void apply_split(const SplitRow& split);
  void apply_hash_list(const DirectoryLayout& layout);
  // Runs `store`, and again after room was made where there was none. `record_words`: what it may
  // take of the records.
  template <class Store>
  Applied store_with_room(std::uint64_t record_words, Store&& store);
  bool has_room_for(const TableNeeds& needs);
  void make_room(const Batch& batch);
  // grow() unless it failed in this batch already.
  bool grew(const TableNeeds& extra);
  Status finish_copy();

  OwnedSegment& segment_;
  Quarantine& quarantine_;
  std::function<void()> alive_;
  std::int64_t next_reseed_ns_ = 0;
  Status growth_refused_;  // why no room could be made, in the batch at hand
};

}  // namespace fingerpost
