#include "syncer/syncer.h"

#include <algorithm>
#include <utility>

#include "shm/boot_clock.h"
#include "shm/number_text.h"
#include "shm/readiness.h"
#include "syncer/host_approval.h"
#include "syncer/wall_clock.h"

namespace fingerpost {
namespace {

constexpr std::chrono::milliseconds kSlice{1};
constexpr std::chrono::milliseconds kBeatEvery{500};  // a quarter of what readers call late
constexpr std::chrono::seconds kRetryMax{10};  // between two looks at a source that does not answer
constexpr std::chrono::milliseconds kHintEvery{200};  // that such a source is asked at a hint
constexpr std::chrono::seconds kRebuildRetry{10};     // after memory was refused
constexpr std::chrono::seconds kReplayEvery{10};      // of quarantined rows, if nothing changed
constexpr std::chrono::milliseconds kDiskWait{5};     // between two looks at writes in flight

SourceState state_of(Code failure) {
  switch (failure) {
    case Code::refused:
      return SourceState::refused;
    case Code::other_directory:
      return SourceState::other_directory;
    default:
      return SourceState::unavailable;
  }
}

}  // namespace

void Syncer::watch_fired() {
  source_->drain_watch();
  hinted_ = true;
}

bool Syncer::may_sync() const {
  // A reload reads the directory itself, and what it builds must catch up before anything is shown.
  return !fill_ || fill_->purpose == FillPurpose::successor ||
         fill_->purpose == FillPurpose::rebuild ||
         (fill_->purpose == FillPurpose::reload && !fill_->isolated && layout_ &&
          segment_->writer().position().version >= layout_->replay_floor);
}

Syncer::Clock::time_point Syncer::next_sync() const {
  if (!may_sync()) return Clock::time_point::max();
  return hinted_ ? std::min(next_poll_, next_hinted_) : next_poll_;
}

Result<std::chrono::nanoseconds> Syncer::turn() {
  const auto now = Clock::now();
  if (segment_) {
    if (Status s = segment_->check_length(); !s.ok()) return s;
  }
  if (now >= next_beat_) {
    if (Status s = beat(); !s.ok()) return s;
    next_beat_ = now + kBeatEvery;
  }
  if (now >= next_sync()) {
    hinted_ = false;
    next_poll_ = now + options_.poll_interval;
    sync();
    next_hinted_ = failures_ == 0 ? now : now + kHintEvery;
  }
  if (fill_) step_fill();
  step_rebuild();
  step_reconcile();
  step_snapshot();

  const bool busy = fill_ || reconcile_ || (segment_ && segment_->writer().copying());
  if (busy) return std::chrono::nanoseconds::zero();
  std::chrono::nanoseconds sleep =
      std::min(next_beat_, std::min(next_poll_, next_sync())) - Clock::now();
  if (snapshot_ || retaining_) sleep = std::min<std::chrono::nanoseconds>(sleep, kDiskWait);
  return std::max(sleep, std::chrono::nanoseconds::zero());
}

Status Syncer::beat() {
  const Status held = lock_.hold();
  if (held.code() == Code::busy) return held;
  if (!held.ok()) log_.limited(Log::Level::error, "lock", held.message());
  if (!segment_) return {};
  if (Status s = segment_->hold_lock(); s.code() == Code::busy) return s;
  alive();
  hold_access();
  if (store_ && store_->is_gone() && snapshot_version_ != 0) {
    snapshot_version_ = 0;
    log_.warning("the snapshot folder " + store_->directory() + " is gone; it is made anew");
  }
  if (options_.lock_memory) {
    if (Status s = segment_->lock_memory(); !s.ok()) {
      options_.lock_memory = false;
      log_.warning(s.message() + "; it may be swapped out");
    }
  }
  const NameState name = segment_->name();
  if (name == NameState::gone) begin_successor("its name vanished");
  if (name == NameState::replaced) begin_successor("its name leads to another file");
  return {};
}

void Syncer::hold_access() {
  const auto had = segment_->hold_access(options_.access);
  if (!had.ok()) {
    log_.limited(Log::Level::error, "access", had.status().message());
  } else if (!had->empty()) {
    log_.limited(Log::Level::warning, "access",
                 "owner, group or mode of " + path_ + " were changed, to " + *had + "; put back");
  }
}

void Syncer::alive() {
  if (options_.on_alive) options_.on_alive();
  const std::int64_t now = boot_time_ns();
  if (segment_) store_heartbeat(segment_->writer().memory().control(), now);
}

void Syncer::change_policy(const SyncerOptions& options) {
  options_.poll_interval = options.poll_interval;
  options_.snapshot_interval = options.snapshot_interval;
  options_.reconcile_interval = options.reconcile_interval;
  options_.freshness.stale_after = options.freshness.stale_after;
  options_.freshness.max_snapshot_age = options.freshness.max_snapshot_age;
  const auto now = Clock::now();
  next_poll_ = std::min(next_poll_, now + options_.poll_interval);
  next_snapshot_ = std::min(next_snapshot_, now + options_.snapshot_interval);
  next_reconcile_ = std::min(next_reconcile_, now + options_.reconcile_interval);
  for (OwnedSegment* segment : {segment_.get(), next_.get()}) {
    if (segment != nullptr)
      store_policy(segment->writer().memory().control(), options_.freshness, source_->kind());
  }
}

bool Syncer::is_ready() const {
  return segment_ &&
         judge(load_freshness_words(segment_->writer().memory().control()), boot_time_ns()).ready;
}

std::string Syncer::state_text() const {
  std::string text;
  if (segment_) {
    const auto& writer = segment_->writer();
    const Readiness readiness =
        judge(load_freshness_words(writer.memory().control()), boot_time_ns());
    text = "serving " + grouped(writer.table().live()) + " entries at version " +
           std::to_string(writer.position().version);
    if (!readiness.ready) {
      text += "; not ready: ";
    } else if (readiness.stale) {
      text += "; stale: ";
    }
    text += readiness.reason;
  } else if (fill_) {
    text = "loading " + grouped(fill_->table->total()) + " entries";
  } else {
    text = "waiting for the directory";
  }
  if (!problem_.empty()) text += "; the source does not serve: " + problem_;
  return text;
}

void Syncer::store_state() {
  if (!segment_) return;
  auto& writer = segment_->writer();
  store_freshness(writer.memory().control(), freshness_);
  const std::uint64_t withheld = quarantine_.count_of(kWhyWithheld);
  writer.set(Counter::quarantined, quarantine_.rows().size() - withheld);
  writer.set(Counter::withheld, withheld + withheld_entries_);
  writer.set(Counter::refused_for_room,
             quarantine_.count_of(kWhyFull) + quarantine_.count_of(kWhyNoMemory));
}

void Syncer::synced() {
  freshness_.serving = Serving::caught_up;
  freshness_.source = SourceState::ok;
  freshness_.last_sync_ns = boot_time_ns();
  last_sync_unix_ns_ = unix_time_ns();
  if (segment_) {
    segment_->writer().add(Counter::syncs);
    if (failures_ != 0) {
      store_last_error(segment_->writer().memory().control(), {});
      log_.info("the source answers again");
    }
  }
  failures_ = 0;
  problem_.clear();
  behind_ = false;
  store_state();
}

void Syncer::source_failed(const Status& status) {
  // Longer and longer, with jitter, so that a fleet does not come back in step.
  const auto backoff = std::min<std::chrono::milliseconds>(
      options_.poll_interval * (1U << std::min(failures_, 6U)), kRetryMax);
  std::uniform_int_distribution<std::int64_t> jitter(0, backoff.count() / 4);
  next_poll_ = Clock::now() + backoff + std::chrono::milliseconds(jitter(random_));
  ++failures_;
  problem_ = status.message();
  freshness_.source = state_of(status.code());
  // Each kind of failure is a cause of its own: a graver one is not "more like this".
  log_.limited(Log::Level::warning, "source " + std::string(to_string(status.code())),
               "the source does not serve: " + status.message());
  if (segment_) {
    segment_->writer().add(Counter::sync_failures);
    store_last_error(segment_->writer().memory().control(), status.message());
  }
  store_state();
}

void Syncer::sync() {
  if (!segment_ || !layout_) {
    const auto layout = source_->read_layout();
    if (!layout.ok()) {
      source_failed(layout.status());
      return;
    }
    if (Status s = check_accepted(*layout); !s.ok()) {
      source_failed(s);
      return;
    }
    layout_ = *layout;
  }
  if (!segment_) {
    if (Status s = begin_boot(); !s.ok()) {
      log_.limited(Log::Level::error, "boot", "cannot load the directory: " + s.message());
    }
    return;
  }
  if (rebuilding_) begin_rebuild();
  const bool replay_is_due = !quarantine_.rows().empty() &&
                             (Clock::now() >= next_replay_ || host_approved_version() > approved_);
  if (!replay_is_due && topology_known_ && !behind_) {
    const auto changed = source_->may_have_changed();
    if (!changed.ok()) {
      source_failed(changed.status());
      return;
    }
    if (!*changed && freshness_.source == SourceState::ok) {
      synced();
      return;
    }
  }
  read_and_apply();
}

Status Syncer::check_fits(const DirectoryLayout& layout, OwnedSegment& segment) const {
  if (layout.directory_id != segment.identity().directory_id) {
    return {Code::other_directory,
            path_ + " serves directory " + to_string(segment.identity().directory_id) +
                ", the source is directory " + to_string(layout.directory_id)};
  }
  const auto& writer = segment.writer();
  if (writer.has_table() && (to_kind(layout.fallback) != writer.fallback_kind() ||
                             fallback_count(layout) != writer.table().geometry().fallback_count)) {
    return {Code::conflict, "its buckets or hash list are not those that are served"};
  }
  return {};
}

std::uint64_t Syncer::next_incarnation() const {
  return std::max(segment_->writer().incarnation() + 1,
                  static_cast<std::uint64_t>(unix_time_ns() / 1'000'000'000));
}

Position Syncer::position_of(const Cursor& end) const {
  return {segment_->writer().incarnation(), end.version, end.nonce, quarantine_.replay_from()};
}

void Syncer::read_and_apply() {
  auto& writer = segment_->writer();
  const Position at = writer.position();
  // Rows that this syncer has quarantined it knows; an earlier one's must be read again.
  const bool knows_quarantined = at.replay_from == quarantine_.replay_from();
  const auto batch =
      source_->read_changes({at.version, at.nonce}, knows_quarantined ? 0 : at.replay_from);
  if (!batch.ok()) {
    source_failed(batch.status());
    return;
  }
  behind_ = true;
  (*batch)->approved = approved_version(**batch);
  const DirectoryLayout& layout = (*batch)->layout;
  if (Status s = check_fits(layout, *segment_); s.code() == Code::other_directory) {
    source_failed(s);
    return;
  }
  layout_ = layout;
  const std::optional<Reload> reload = reload_for(**batch, at);
  if (!reload) {
    withheld_reload_.reset();
    withheld_entries_ = 0;
    if (knows_quarantined) replay_quarantined(**batch);
    apply(**batch);
  } else if (reload_is_withheld(**batch)) {
    freshness_.source = SourceState::ok;  // it answers; the data ages all the same
    store_state();
  } else {
    begin_reload(reload->incarnation, reload->why);
  }
}

void Syncer::replay_quarantined(Batch& batch) {
  // What holds a row back is a shard unknown, room or approval lacking: without news of these there
  // is no hurry.
  const bool news = batch.topology || !batch.removals.empty() || batch.approved != approved_;
  if (!news && Clock::now() < next_replay_) return;
  approved_ = batch.approved;
  next_replay_ = Clock::now() + kReplayEvery;
  quarantine_.replay_into(batch);
}

std::optional<Syncer::Reload> Syncer::reload_for(const Batch& batch, const Position& at) const {
  const auto& writer = segment_->writer();
  if (batch.kind == Batch::Kind::other_history) {
    return Reload{next_incarnation(),
                  "its history is another one than that of version " + std::to_string(at.version)};
  }
  if (batch.kind == Batch::Kind::below_floor) {
    return Reload{writer.incarnation(),
                  "removals since version " + std::to_string(at.version) + " are forgotten"};
  }
  if (at.incarnation != writer.incarnation()) {
    return Reload{writer.incarnation(), "a syncer died between a reload and its position"};
  }
  if (Status s = check_fits(batch.layout, *segment_); !s.ok()) {
    return Reload{next_incarnation(), s.message()};
  }
  return std::nullopt;
}

std::uint64_t Syncer::approved_version(const Batch& batch) const {
  return std::max(batch.approved, host_approved_version());
}

std::uint64_t Syncer::host_approved_version() const {
  const auto given = read_host_approval(path_);
  if (!given.ok()) {
    if (given.status().code() != Code::absent)
      log_.limited(Log::Level::warning, "host-approval", given.status().message());
    return 0;
  }
  const bool holds = given->directory_id == segment_->identity().directory_id &&
                     given->incarnation == segment_->writer().incarnation();
  return holds ? given->version : 0;
}

bool Syncer::reload_is_withheld(const Batch& batch) const {
  if (!withheld_reload_ || batch.approved >= withheld_reload_->version) return false;
  const bool went_on = batch.end != *withheld_reload_;
  return !went_on || Clock::now() < next_judgement_;
}

Status Syncer::publish_topology(const Batch& batch) {
  if (batch.topology) return segment_->writer().publish_topology(*batch.topology);
  if (topology_known_) return {};
  // What was adopted or loaded may name shards that the directory has removed since.
  const auto whole = source_->read_all();
  if (!whole.ok()) return whole.status();
  if (Status s = check_fits((*whole)->layout(), *segment_); !s.ok()) return s;
  return segment_->writer().publish_topology((*whole)->topology());
}

void Syncer::apply(Batch& batch) {
  auto& writer = segment_->writer();
  // The topology before the rows that name it, and before they are judged.
  if (Status s = publish_topology(batch); !s.ok()) {
    if (s.code() == Code::no_space) {
      begin_successor(s.message(), true);
    } else {
      source_failed(s);
    }
    return;
  }
  topology_known_ = true;
  if (fill_ && fill_->purpose == FillPurpose::successor && batch.topology) {
    if (Status s = next_->writer().publish_topology(*batch.topology); !s.ok()) fill_failed(s);
  }
  batch.topology.reset();
  if (const std::uint64_t held = guard_.screen(batch, writer, quarantine_, boot_time_ns());
      held != 0) {
    log_.limited(Log::Level::error, "poison-guard",
                 std::to_string(held) +
                     " changes of owners, deletions or removals without a verb are withheld; " +
                     how_to_approve(batch.end.version));
  }
  if (Status s = sink_->apply(batch); !s.ok()) {
    begin_successor(s.message(), true);
    return;
  }
  if (!sink_->growth_refused().ok()) {
    log_.limited(Log::Level::error, "growth",
                 "the table cannot grow: " + sink_->growth_refused().message());
  }
  if (fill_ && fill_->purpose == FillPurpose::successor) {
    if (Status s = next_sink_->apply(batch); !s.ok()) fill_failed(s);
  }
  if (snapshot_) {
    if (Status s = snapshot_->note(batch); !s.ok()) snapshot_failed(s);
  }
  const Position position = position_of(batch.end);
  if (position != writer.position()) writer.publish(position);
  if (!quarantine_.rows().empty()) {
    const auto& [id, row] = *quarantine_.rows().begin();
    log_.limited(Log::Level::warning, "quarantine",
                 std::to_string(quarantine_.rows().size()) + " rows are quarantined; '" + id +
                     "' " + row.why);
  }
  synced();
}

void Syncer::step_rebuild() {
  if (!segment_ || fill_) return;
  auto& writer = segment_->writer();
  Status failed;
  if (writer.copying()) {
    const auto done = writer.step_copy(kSlice);
    if (!done.ok()) {
      failed = done.status();
    } else if (*done) {
      writer.switch_generation();
      reseed_ = false;
    }
  } else if (writer.rebuild_due() && Clock::now() >= next_rebuild_) {
    failed = writer.begin_copy({}, seed_like(writer.table().generation().seed));
    if (!failed.ok()) writer.add(Counter::rebuild_failures);
  }
  if (!failed.ok()) {
    reseed_ = true;
    next_rebuild_ = Clock::now() + kRebuildRetry;
    log_.limited(Log::Level::error, "growth", "the table cannot grow: " + failed.message());
  }
}

void Syncer::step_reconcile() {
  const bool can = segment_ && !fill_ && !segment_->writer().copying() &&
                   freshness_.serving == Serving::caught_up;
  if (!can) {
    reconcile_.reset();
    return;
  }
  if (!reconcile_) {
    if (Clock::now() < next_reconcile_ || freshness_.source != SourceState::ok || withheld_reload_)
      return;
    next_reconcile_ = Clock::now() + options_.reconcile_interval;
    auto read = source_->read_all();
    if (!read.ok() || !check_fits((*read)->layout(), *segment_).ok()) return;
    reconcile_ = std::make_unique<Reconcile>(std::move(*read), *segment_, quarantine_);
  }
  const auto done = reconcile_->step(kSlice);
  if (!done.ok()) {
    if (done.status().code() == Code::conflict) reconcile_now();
    reconcile_.reset();
    return;
  }
  if (!*done) return;
  const auto finished = std::move(reconcile_);
  auto& writer = segment_->writer();
  writer.add(Counter::reconciliations);
  if (finished->differences() == 0) return;
  writer.add(Counter::repairs, finished->differences());
  log_.warning("reconciliation found " + std::to_string(finished->differences()) +
               " entries that differ from the directory");
  apply(finished->repair());
  if (finished->needs_reload())
    begin_reload(next_incarnation(), "rows differ without a newer epoch");
}

SnapshotEnd Syncer::snapshot_end() const {
  SnapshotEnd end;
  const Position position = segment_->writer().position();
  end.cursor = {position.version, position.nonce};
  end.replay_from = position.replay_from;
  end.last_sync_unix_ns = last_sync_unix_ns_;
  end.meta.layout = *layout_;
  return end;
}

void Syncer::step_snapshot() {
  if (!store_ || !segment_ || !layout_) return;
  if (retaining_) {
    const auto more = store_->retain_step(segment_->identity().directory_id);
    retaining_ = more.ok() && *more;
  }
  if (!snapshot_) {
    const bool due = Clock::now() >= next_snapshot_ && !fill_ &&
                     freshness_.serving == Serving::caught_up &&
                     segment_->writer().position().version != snapshot_version_;
    if (!due) return;
    auto begun = SnapshotTask::begin(*store_, *segment_);
    if (!begun.ok()) {
      snapshot_failed(begun.status());
      return;
    }
    snapshot_ = std::move(*begun);
  }
  const auto done = snapshot_->step(kSlice, snapshot_end());
  if (!done.ok()) {
    snapshot_failed(done.status());
  } else if (*done) {
    snapshot_version_ = snapshot_->version();
    segment_->writer().add(Counter::snapshots_written);
    note_io(segment_->writer(), snapshot_->io_stats());
    snapshot_.reset();
    retaining_ = true;
    next_snapshot_ = Clock::now() + options_.snapshot_interval;
  }
}

void Syncer::note_io(SegmentWriter<StdAtomics>& writer, const IoStats& io) {
  writer.set(Counter::snapshot_bytes, io.bytes_read + io.bytes_written);
  writer.set(Counter::snapshot_depth, io.depth_reached);
  writer.set(Counter::snapshot_by_ring, io.backend == "io_uring" ? 1 : 0);
  if (io.ring_fault.error == 0 || ring_fault_told_) return;
  ring_fault_told_ = true;  // it does not change while the process lives
  log_.warning(
      Status::from_errno(io.ring_fault.error, std::string(io.ring_fault.call) + " is refused")
          .message() +
      "; snapshots go by plain calls");
}

void Syncer::snapshot_failed(const Status& status) {
  snapshot_.reset();
  if (status.code() == Code::conflict) return;  // a generation switch: begins again at once
  next_snapshot_ = Clock::now() + options_.snapshot_interval;
  segment_->writer().add(Counter::snapshot_failures);
  log_.limited(Log::Level::error, "snapshot", "cannot write a snapshot: " + status.message());
}

void Syncer::stop(std::chrono::milliseconds budget) {
  drop_fill();
  if (!store_ || !segment_ || !layout_ || freshness_.serving != Serving::caught_up) return;
  const auto until = Clock::now() + budget;
  const auto& writer = segment_->writer();
  const std::uint64_t failures = writer.get(Counter::snapshot_failures);
  while (writer.position().version != snapshot_version_ && Clock::now() < until &&
         writer.get(Counter::snapshot_failures) == failures) {
    next_snapshot_ = Clock::now();  // one that is on its way may end at an earlier version
    step_snapshot();
  }
}

}  // namespace fingerpost
