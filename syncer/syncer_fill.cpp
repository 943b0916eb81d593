// Generations under construction: the first one, a reload, a successor segment. Each is filled in
// slices while what is served stays as it is, catches up, and is then shown by one store.
#include <algorithm>
#include <utility>

#include "shm/boot_clock.h"
#include "syncer/syncer.h"
#include "syncer/wall_clock.h"

namespace fingerpost {
namespace {

constexpr std::chrono::milliseconds kSlice{1};
constexpr std::chrono::seconds kRetryAfter{10};
constexpr std::chrono::milliseconds kPauseAfter{500};                      // between two successors
constexpr std::chrono::minutes kJudgeAgainAfter{1};                        // a whole read each time
constexpr std::uint64_t kRecordWordsPerId = 32;                            // of the longest
constexpr std::chrono::nanoseconds kClockSlack = std::chrono::seconds(1);  // of a clock set right

// Whether both have the same buckets, or hash list, of the same directory.
bool is_same_rule(const DirectoryLayout& one, const DirectoryLayout& other) {
  return one.directory_id == other.directory_id && one.fallback == other.fallback &&
         fallback_count(one) == fallback_count(other);
}

}  // namespace

std::uint64_t Syncer::seed_like(std::uint64_t known) const {
  return known == 0 || reseed_ ? draw_seed() : known;
}

OwnedSegment& Syncer::fill_target() {
  return next_ ? *next_ : *segment_;
}

Status Syncer::begin_read_fill(FillPurpose purpose, std::uint64_t incarnation, bool isolated) {
  auto read = source_->read_all();
  if (!read.ok()) return read.status();
  OwnedSegment& target = fill_target();
  if (Status s = check_fits((*read)->layout(), target); s.code() == Code::other_directory) return s;
  TableNeeds needs = needs_of(**read, record_words_);
  needs.entries = std::min(needs.entries, target.identity().plan.capacity);  // the rest waits
  if (Status s = target.writer().begin_load(needs, draw_seed(), incarnation, isolated); !s.ok())
    return s;
  if (Status s = target.writer().add_shards((*read)->topology()); !s.ok()) {
    if (s.code() == Code::no_space)
      topology_bytes_ = target.identity().plan.larger_topology_bytes();
    target.writer().discard_generation();
    return s;
  }
  next_quarantine_.clear();
  next_sink_.emplace(target, next_quarantine_, [this] { alive(); });
  fill_.emplace();
  fill_->purpose = purpose;
  fill_->read = std::move(*read);
  fill_->table = fill_from_read(*fill_->read, *next_sink_);
  fill_->isolated = isolated;
  fill_->incarnation = incarnation;
  return {};
}

void Syncer::begin_reload(std::uint64_t incarnation, std::string_view why) {
  if (fill_) return;
  snapshot_.reset();
  reconcile_.reset();
  const bool isolated = incarnation != segment_->writer().incarnation();
  log_.limited(Log::Level::warning, "reload", "reloading the directory: " + std::string(why));
  if (Status s = begin_read_fill(FillPurpose::reload, incarnation, isolated); !s.ok()) {
    source_failed(s);
  }
}

void Syncer::begin_successor(std::string_view why, bool needs_topology) {
  if (fill_ || Clock::now() < next_successor_) return;
  snapshot_.reset();
  auto& old = segment_->writer();
  old.discard_generation();
  const Topology& topology = old.topology();
  const SegmentPlan& plan = segment_->identity().plan;
  const bool is_crowded =
      topology.arena_words() - topology.used_words() < topology.arena_words() / 4;
  const std::uint64_t topology_bytes =
      needs_topology || is_crowded ? plan.larger_topology_bytes() : plan.topology_bytes;
  // One that is not large enough, and cannot be, is not tried again and again.
  next_successor_ = Clock::now() + (needs_topology && topology_bytes == plan.topology_bytes
                                        ? std::chrono::milliseconds(kRetryAfter)
                                        : kPauseAfter);
  log_.info("building a successor of " + path_ + ": " + std::string(why));
  Status status = make_segment(segment_->identity().directory_id, topology_bytes, next_);
  if (status.ok()) {
    TableNeeds needs;
    needs.entries = old.table().live();
    needs.record_words = old.table().records_live();
    needs.fallback_kind = old.fallback_kind();
    needs.fallback_count = old.table().geometry().fallback_count;
    status = next_->writer().begin_load(needs, seed_like(old.table().generation().seed),
                                        old.incarnation(), false);
  }
  if (status.ok()) {
    auto table = fill_from_segment(*segment_, *next_);
    if (table.ok()) {
      next_quarantine_.clear();
      next_sink_.emplace(*next_, next_quarantine_, [this] { alive(); });
      fill_.emplace();
      fill_->purpose = FillPurpose::successor;
      fill_->table = std::move(*table);
      fill_->incarnation = old.incarnation();
      return;
    }
    status = table.status();
  }
  next_.reset();
  next_successor_ = Clock::now() + kRetryAfter;
  old.add(Counter::rebuild_failures);
  log_.limited(Log::Level::error, "successor",
               "cannot build a successor of " + path_ + ": " + status.message());
}

void Syncer::begin_rebuild() {
  if (fill_ || Clock::now() < next_successor_) return;
  next_successor_ = Clock::now() + kRetryAfter;
  snapshot_.reset();
  segment_->writer().discard_generation();
  log_.info("building " + path_ + " anew from the directory");
  topology_bytes_ = std::max(topology_bytes_, segment_->identity().plan.topology_bytes);
  Status status = make_segment(segment_->identity().directory_id, topology_bytes_, next_);
  if (status.ok()) status = begin_read_fill(FillPurpose::rebuild, next_incarnation(), false);
  if (status.ok()) return;
  next_.reset();
  segment_->writer().add(Counter::rebuild_failures);
  log_.limited(Log::Level::error, "rebuild",
               "cannot build " + path_ + " anew: " + status.message());
}

void Syncer::drop_fill() {
  if (!fill_) return;
  if (fill_->purpose == FillPurpose::reload) segment_->writer().discard_generation();
  fill_.reset();
  next_sink_.reset();
  next_.reset();
}

void Syncer::step_fill() {
  if (!fill_target().writer().building()) {  // an apply needed the half for growth
    fill_failed({Code::conflict, "the generation under construction had to make way"});
    return;
  }
  const auto done = fill_->table->step(kSlice);
  if (!done.ok()) {
    fill_failed(done.status());
  } else if (*done) {
    if (Status s = finish_fill(); !s.ok()) fill_failed(s);
  }
}

void Syncer::fill_failed(const Status& status) {
  const std::uint64_t rows = fill_->table->total();
  const bool from_snapshot = fill_->snapshot.has_value();
  reseed_ = status.code() == Code::conflict;
  if (status.code() == Code::no_space) {
    record_words_ = std::min(std::max(record_words_ * 2, rows * 4), rows * kRecordWordsPerId);
  } else if (from_snapshot && status.code() != Code::conflict) {
    rejected_snapshots_.push_back(fill_->snapshot->path);
  }
  const FillPurpose purpose = fill_->purpose;
  if (purpose == FillPurpose::successor) next_successor_ = Clock::now() + kRetryAfter;
  const bool from_source = fill_->read != nullptr;
  log_.limited(Log::Level::warning, "fill",
               "a generation under construction was given up: " + status.message());
  drop_fill();
  if (purpose == FillPurpose::boot && from_snapshot) {
    if (Status s = begin_boot(); !s.ok()) {
      log_.limited(Log::Level::error, "boot", "cannot load the directory: " + s.message());
    }
  } else if (status.code() == Code::refused) {
    store_state();
  } else if (from_source && status.code() != Code::no_space && status.code() != Code::conflict) {
    source_failed(status);
  }
}

Status Syncer::catch_up_fill(Position& position) {
  auto& writer = fill_target().writer();
  if (Status s = writer.publish_topology(fill_->read->topology()); !s.ok()) return s;
  const auto batch = source_->read_changes(fill_->read->end(), next_quarantine_.replay_from());
  if (!batch.ok()) return batch.status();
  if ((*batch)->kind != Batch::Kind::changes ||
      !is_same_rule((*batch)->layout, fill_->read->layout())) {
    return {Code::conflict, "the directory turned to another history while it was read"};
  }
  if (Status s = next_sink_->apply(**batch); !s.ok()) return s;
  if (!writer.building())
    return {Code::conflict, "the generation under construction had to make way"};
  if (Status s = judge_reload(**batch); !s.ok()) return s;
  layout_ = (*batch)->layout;
  position = {fill_->incarnation, (*batch)->end.version, (*batch)->end.nonce,
              next_quarantine_.replay_from()};
  return {};
}

Status Syncer::judge_reload(const Batch& batch) {
  if (fill_->purpose != FillPurpose::reload) return {};
  const auto& served = segment_->writer().table();
  const std::uint64_t differences =
      PoisonGuard::differences(served, segment_->writer().next_table());
  const bool is_approved = withheld_reload_ && approved_version(batch) >= withheld_reload_->version;
  if (differences <= PoisonGuard::limit(served.live()) || is_approved) {
    withheld_reload_.reset();
    withheld_entries_ = 0;
    return {};
  }
  withheld_reload_ = batch.end;
  withheld_entries_ = differences;
  next_judgement_ = Clock::now() + kJudgeAgainAfter;
  return {Code::refused, std::to_string(differences) + " of " + std::to_string(served.live()) +
                             " entries would change their owner or go; withheld; " +
                             how_to_approve(batch.end.version)};
}

Status Syncer::finish_fill() {
  Position position;
  if (fill_->read) {
    if (Status s = catch_up_fill(position); !s.ok()) return s;
  } else if (fill_->snapshot) {
    const SnapshotHeader& header = fill_->snapshot->header;
    position = {header.incarnation, header.cursor.version, header.cursor.nonce, header.replay_from};
  } else {
    position = segment_->writer().position();
  }
  auto& writer = fill_target().writer();
  const std::uint64_t before = segment_ ? segment_->writer().incarnation() : fill_->incarnation;
  writer.switch_generation();
  writer.publish(position);
  if (fill_->incarnation != before) writer.add(Counter::history_changes);

  if (fill_->purpose != FillPurpose::successor) quarantine_ = std::move(next_quarantine_);
  next_quarantine_.clear();
  if (fill_->snapshot) {
    const std::int64_t now = boot_time_ns();
    const SnapshotHeader& header = fill_->snapshot->header;
    freshness_.serving = Serving::snapshot;
    // Of a time to come, by this host's clock, nothing can be said.
    const std::int64_t age = unix_time_ns() - header.last_sync_unix_ns;
    freshness_.last_sync_ns =
        age >= -kClockSlack.count() ? now - std::max<std::int64_t>(0, age) : kTimeUnknown;
    freshness_.catch_up_by_ns = now + options_.freshness.catch_up_wait.count();
    last_sync_unix_ns_ = header.last_sync_unix_ns;
    snapshot_version_ = header.cursor.version;
    note_io(writer, fill_->table->io_stats());
  } else if (fill_->read) {
    topology_known_ = true;
    synced();
  }
  if (next_) {
    if (Status s = publish_filled(); !s.ok()) return s;
  }
  if (fill_->read) rebuilding_ = false;
  fill_.reset();
  next_sink_.reset();
  record_words_ = 0;
  store_state();
  log_.info("serving " + std::to_string(segment_->writer().table().live()) +
            " entries at version " + std::to_string(position.version) + " from " + path_);
  return {};
}

Status Syncer::publish_filled() {
  auto& control = next_->writer().memory().control();
  store_freshness(control, freshness_);
  store_heartbeat(control, boot_time_ns());
  if (segment_) {
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      const auto counter = static_cast<Counter>(i);
      if (counter != Counter::entries && counter != Counter::vacant_slots) {
        next_->writer().set(counter, segment_->writer().get(counter));
      }
    }
    next_->writer().add(Counter::supersedes);
  }
  Status status = next_->publish_first();
  if (status.code() == Code::conflict) status = next_->publish_successor();
  if (!status.ok()) return status;
  if (segment_) segment_->writer().supersede();
  // All of these look into the segment that goes.
  sink_.reset();
  snapshot_.reset();
  reconcile_.reset();
  segment_ = std::move(next_);
  sink_.emplace(*segment_, quarantine_, [this] { alive(); });
  return {};
}

}  // namespace fingerpost
