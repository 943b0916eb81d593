// Keeps one segment in step with one directory: adopts or builds it, reads what changed, writes
// snapshots.
//
// A state machine without a loop of its own: the daemon calls turn() whenever turn() asked for it
// or the source's watch has something, and nothing in it takes much longer than a millisecond, but
// for a batch that is large itself. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "shm/owned_segment.h"
#include "shm/writer_lock.h"
#include "syncer/freshness.h"
#include "syncer/log.h"
#include "syncer/poison_guard.h"
#include "syncer/quarantine.h"
#include "syncer/reconcile.h"
#include "syncer/row_sink.h"
#include "syncer/snapshot_store.h"
#include "syncer/snapshot_task.h"
#include "syncer/source.h"
#include "syncer/table_fill.h"

namespace fingerpost {

struct SyncerOptions {
  std::string name;       // of the segment, or its path
  std::string directory;  // URL of the source
  std::string state_dir;  // of the snapshots; empty: none are written or loaded
  SegmentAccess access = SegmentAccess::of_this_process();
  std::uint64_t capacity = kCapacityDefault;
  std::uint64_t topology_bytes = 0;                // 0: the default
  std::chrono::milliseconds poll_interval{1'000};  // the guarantee behind the watch
  std::chrono::milliseconds snapshot_interval{60'000};
  std::chrono::milliseconds reconcile_interval{600'000};
  FreshnessPolicy freshness;
  bool lock_memory = false;  // try to keep the segment out of swap
  bool rebuild = false;      // load from the directory, whatever segment or snapshot there is
  // Whose segment may take the place of another directory's.
  std::optional<DirectoryId> accepted_directory;
  std::function<void()> on_alive;  // called whenever it shows that it goes on; may be empty
};

// What a generation under construction is for.
enum class FillPurpose : std::uint8_t { boot, reload, successor, rebuild };
struct Fill {
  FillPurpose purpose = FillPurpose::boot;
  std::unique_ptr<FullRead> read;        // where it comes from the directory
  std::optional<SnapshotInfo> snapshot;  // where it comes from a snapshot
  std::unique_ptr<TableFill> table;
  bool isolated = false;
  std::uint64_t incarnation = 0;
};

class Syncer {
 public:
  // Takes the writer lock, looks at the source once, and adopts the segment or begins to load one.
  // busy: another syncer has the name · other_directory: the segment is another directory's ·
  // wrong_owner, not_permitted, refused, no_space as the steps give them. A source that does not
  // answer is no error.
  static Result<std::unique_ptr<Syncer>> start(const SyncerOptions& options, Log& log);

  // Does what is due; how long it may sleep afterwards. An error ends the daemon: the name is
  // another writer's now, or the segment was cut; then nothing but the destructor may follow.
  Result<std::chrono::nanoseconds> turn();

  // Readable when the source may have changed; -1: none.
  int watch_fd() const { return source_->watch_fd(); }
  // The descriptor was readable.
  void watch_fired();

  // Takes over the intervals, and what counts as stale or too old. The rest is ignored.
  void change_policy(const SyncerOptions& options);

  // Whether there is one that goes on serving when this ends.
  bool has_segment() const { return segment_ != nullptr; }
  // Whether workers find a segment under the name that they may rely on.
  bool is_ready() const;
  // What it serves or waits for, in one line.
  std::string state_text() const;

  // Compares everything with the directory as soon as possible, not only when it is due.
  void reconcile_now() { next_reconcile_ = Clock::now(); }

  // Leaves the segment serving; writes a last snapshot if there is something new and it takes at
  // most `budget`.
  void stop(std::chrono::milliseconds budget);

 private:
  using Clock = std::chrono::steady_clock;

  Syncer(const SyncerOptions& options, std::string path, WriterLock lock,
         std::unique_ptr<Source> source, Log& log);

  // --- boot (syncer_boot.cpp) ---
  Status open_state();
  Status adopt_or_load();
  Status adopt(bool& adopted);
  Status begin_boot();
  Status begin_boot_from_snapshot(bool& begun);
  Status begin_boot_from_source();
  void begin_rebuild();
  // other_directory: --accept-directory names another one
  Status check_accepted(const DirectoryLayout& layout) const;
  // Which directory's segment and snapshots are wanted, if that is known.
  std::optional<DirectoryId> wanted_directory() const;
  Status make_segment(const DirectoryId& id, std::uint64_t topology_bytes,
                      std::unique_ptr<OwnedSegment>& out);

  // One try, in a segment with topology_bytes_ for shards; no_space may have raised these.
  Status begin_boot_once();
  // Up to which version the guard lets changes through: what the directory says, or this host of
  // the segment that is served.
  std::uint64_t approved_version(const Batch& batch) const;
  std::uint64_t host_approved_version() const;

  // --- fills (syncer_fill.cpp) ---
  Status begin_read_fill(FillPurpose purpose, std::uint64_t incarnation, bool isolated);
  void begin_reload(std::uint64_t incarnation, std::string_view why);
  void begin_successor(std::string_view why, bool needs_topology = false);
  void step_fill();
  Status finish_fill();
  Status catch_up_fill(Position& position);
  Status judge_reload(const Batch& batch);
  Status publish_filled();
  void fill_failed(const Status& status);
  void drop_fill();
  OwnedSegment& fill_target();
  // A seed for a table that is filled in the order of one with the seed `known`: that one, unless a
  // chain was full under it.
  std::uint64_t seed_like(std::uint64_t known) const;

  // --- turns (syncer.cpp) ---
  Status beat();
  void hold_access();
  void sync();
  void read_and_apply();
  void replay_quarantined(Batch& batch);
  void apply(Batch& batch);
  Status publish_topology(const Batch& batch);
  // Why what was read cannot be applied to what is served, if so, and as which incarnation it is
  // loaded instead.
  struct Reload {
    std::uint64_t incarnation;
    std::string why;
  };
  std::optional<Reload> reload_for(const Batch& batch, const Position& at) const;
  bool reload_is_withheld(const Batch& batch) const;
  void step_reconcile();
  void synced();
  void source_failed(const Status& status);
  void step_rebuild();
  void step_snapshot();
  // Tells how a snapshot was written or read, and once if the kernel refuses io_uring.
  void note_io(SegmentWriter<StdAtomics>& writer, const IoStats& io);
  void snapshot_failed(const Status& status);
  SnapshotEnd snapshot_end() const;
  void store_state();
  void alive();
  bool may_sync() const;
  // When the source is to be read next: at the poll, or as a hint asks.
  Clock::time_point next_sync() const;
  // Whether rows of a directory with that layout can go into that segment: between two reads it may
  // have been replaced. other_directory · conflict: its fallback rule is another one
  Status check_fits(const DirectoryLayout& layout, OwnedSegment& segment) const;
  Position position_of(const Cursor& end) const;
  std::uint64_t next_incarnation() const;

  SyncerOptions options_;
  std::string path_;
  Log& log_;
  WriterLock lock_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<SnapshotStore> store_;
  std::unique_ptr<OwnedSegment>
      segment_;                         // the one that is served; none before the first was loaded
  std::unique_ptr<OwnedSegment> next_;  // being loaded: the first one, or a successor
  std::optional<RowSink> sink_;
  std::optional<RowSink> next_sink_;
  Quarantine quarantine_;
  Quarantine next_quarantine_;
  std::optional<Fill> fill_;
  std::unique_ptr<SnapshotTask> snapshot_;
  PoisonGuard guard_;
  std::optional<Cursor> withheld_reload_;  // where the directory stood when a reload was withheld
  std::uint64_t withheld_entries_ = 0;     // of it
  std::unique_ptr<Reconcile> reconcile_;
  std::optional<DirectoryLayout> layout_;  // as last read
  Freshness freshness_;
  std::int64_t last_sync_unix_ns_ = 0;
  std::uint64_t snapshot_version_ = 0;           // of the last one written or loaded
  std::vector<std::string> rejected_snapshots_;  // since the start
  std::uint64_t approved_ = 0;                   // at the last replay of quarantined rows
  std::uint64_t record_words_ = 0;               // what the last fill found too small, doubled
  bool reseed_ = false;               // the last fill or copy met a full probe chain, perhaps
  std::uint64_t topology_bytes_ = 0;  // of the next segment; 0: the default
  bool topology_known_ = false;       // read whole since the start
  bool behind_ = false;  // what was read last is not applied yet, and must be read again
  bool hinted_ = true;
  bool retaining_ = false;
  bool ring_fault_told_ = false;
  std::minstd_rand random_{std::random_device{}()};
  unsigned failures_ = 0;    // of the source, in a row
  std::string problem_;      // of the last of them
  bool rebuilding_ = false;  // asked for, and not done yet
  Clock::time_point next_beat_;
  Clock::time_point next_poll_;
  Clock::time_point
      next_hinted_;  // a hint is not followed before: only after a failure in time to come
  Clock::time_point next_snapshot_;
  Clock::time_point next_successor_;
  Clock::time_point next_rebuild_;
  Clock::time_point next_replay_;
  Clock::time_point next_reconcile_;
  Clock::time_point next_judgement_;  // of a withheld reload, if the directory went on meanwhile
};

}  // namespace fingerpost
