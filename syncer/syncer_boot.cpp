// From nothing, or from what an earlier syncer left, to a segment that serves.
#include <algorithm>
#include <utility>

#include "shm/boot_clock.h"
#include "shm/segment_path.h"
#include "syncer/syncer.h"
#include "syncer/wall_clock.h"

namespace fingerpost {
namespace {

// The segment is of no use to this writer, but its name is: a successor takes it.
bool may_replace(Code code) {
  return code == Code::not_ready || code == Code::other_layout || code == Code::corrupt ||
         code == Code::conflict;
}

// What keeps the snapshots of several directories apart in one state directory.
std::string snapshot_name(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kPrefix = "fingerpost.";
  return file.starts_with(kPrefix) ? file.substr(kPrefix.size()) : file;
}

}  // namespace

Result<std::unique_ptr<Syncer>> Syncer::start(const SyncerOptions& options, Log& log) {
  auto path = path_to_write(options.name, kLayoutVersion);
  if (!path.ok()) return path.status();
  auto lock = WriterLock::acquire(*path, options.access.owner);
  if (!lock.ok()) return lock.status();
  auto source = open_source(options.directory);
  if (!source.ok()) return source.status();
  std::unique_ptr<Syncer> syncer(
      new Syncer(options, std::move(*path), std::move(*lock), std::move(*source), log));
  if (Status s = syncer->open_state(); !s.ok()) return s;
  if (Status s = syncer->adopt_or_load(); !s.ok()) return s;
  return syncer;
}

Syncer::Syncer(const SyncerOptions& options, std::string path, WriterLock lock,
               std::unique_ptr<Source> source, Log& log)
    : options_(options),
      path_(std::move(path)),
      log_(log),
      lock_(std::move(lock)),
      source_(std::move(source)),
      topology_bytes_(options.topology_bytes),
      rebuilding_(options.rebuild),
      next_snapshot_(Clock::now()),
      next_reconcile_(Clock::now() + options.reconcile_interval) {}

Status Syncer::open_state() {
  if (Status s = remove_half_made(path_); !s.ok()) return s;
  if (!options_.state_dir.empty()) {
    auto store = SnapshotStore::open(options_.state_dir, snapshot_name(path_), IoOptions{});
    if (!store.ok()) return store.status();
    store_ = std::move(*store);
  }
  const auto layout = source_->read_layout();
  if (layout.ok()) {
    if (Status s = check_accepted(*layout); !s.ok()) return s;
    layout_ = *layout;
  } else if (layout.status().code() == Code::refused) {
    return layout.status();  // it answers, and is no directory of ours: no use in waiting
  } else {
    source_failed(layout.status());
  }
  return {};
}

Status Syncer::check_accepted(const DirectoryLayout& layout) const {
  const auto& accepted = options_.accepted_directory;
  if (!accepted || *accepted == layout.directory_id) return {};
  return {Code::other_directory, "the source is directory " + to_string(layout.directory_id) +
                                     ", --accept-directory names " + to_string(*accepted)};
}

std::optional<DirectoryId> Syncer::wanted_directory() const {
  if (options_.accepted_directory) return options_.accepted_directory;
  return layout_ ? std::optional(layout_->directory_id) : std::nullopt;
}

Status Syncer::adopt_or_load() {
  bool adopted = false;
  if (Status s = adopt(adopted); !s.ok()) return s;
  if (adopted) return {};
  return begin_boot();
}

Status Syncer::adopt(bool& adopted) {
  auto segment = OwnedSegment::adopt(path_, options_.access, wanted_directory());
  if (!segment.ok()) {
    const Status& why = segment.status();
    if (why.code() == Code::absent) return {};
    const bool accepted = why.code() == Code::other_directory && options_.accepted_directory;
    if (!accepted && !may_replace(why.code())) return why;
    log_.warning("cannot adopt " + path_ + ", a successor will take its name: " + why.message());
    return {};
  }
  adopted = true;
  segment_ = std::move(*segment);
  sink_.emplace(*segment_, quarantine_, [this] { alive(); });
  const Freshness before = load_freshness(segment_->writer().memory().control());
  freshness_.serving = Serving::adopted;
  freshness_.last_sync_ns = before.last_sync_ns;
  freshness_.catch_up_by_ns = boot_time_ns() + options_.freshness.catch_up_wait.count();
  last_sync_unix_ns_ = unix_time_ns() - (boot_time_ns() - before.last_sync_ns);
  store_policy(segment_->writer().memory().control(), options_.freshness, source_->kind());
  store_state();
  const auto& writer = segment_->writer();
  log_.info("adopted " + path_ + ": " + std::to_string(writer.table().live()) +
            " entries at version " + std::to_string(writer.position().version));
  if (segment_->identity().plan.capacity < options_.capacity && !rebuilding_)
    begin_successor("a larger capacity is configured");
  return {};
}

Status Syncer::make_segment(const DirectoryId& id, std::uint64_t topology_bytes,
                            std::unique_ptr<OwnedSegment>& out) {
  SegmentIdentity identity;
  identity.directory_id = id;
  identity.plan = SegmentPlan::make(
      std::max(options_.capacity, segment_ ? segment_->writer().table().live() : 0),
      topology_bytes);
  const auto boot = current_boot_id();
  if (!boot.ok()) return boot.status();
  identity.boot_id = *boot;
  auto made = OwnedSegment::create(path_, options_.access, identity);
  if (!made.ok()) return made.status();
  out = std::move(*made);
  store_policy(out->writer().memory().control(), options_.freshness, source_->kind());
  return {};
}

Status Syncer::begin_boot() {
  for (;;) {
    const std::uint64_t tried = topology_bytes_;
    Status status = begin_boot_once();
    if (status.code() != Code::no_space || topology_bytes_ == tried) return status;
  }
}

Status Syncer::begin_boot_once() {
  bool begun = false;
  if (store_ && !rebuilding_) {
    if (Status s = begin_boot_from_snapshot(begun); !s.ok()) return s;
  }
  if (begun || !layout_) return {};
  return begin_boot_from_source();
}

Status Syncer::begin_boot_from_snapshot(bool& begun) {
  const auto id = wanted_directory();
  auto listing =
      id ? store_->candidates(*id) : list_snapshots(store_->directory(), snapshot_name(path_));
  if (!listing.ok()) return listing.status();
  for (const SnapshotFault& fault : listing->faults) {
    log_.limited(Log::Level::warning, "snapshot-fault " + fault.path,
                 "snapshot left aside: " + fault.why.message());
  }
  for (const SnapshotInfo& info : listing->good) {
    if (std::find(rejected_snapshots_.begin(), rejected_snapshots_.end(), info.path) !=
        rejected_snapshots_.end()) {
      continue;
    }
    if (info.header.entries > options_.capacity) {
      log_.limited(Log::Level::warning, "snapshot-size",
                   "snapshot left aside: " + info.path + " holds " +
                       std::to_string(info.header.entries) + " entries, the capacity is " +
                       std::to_string(options_.capacity));
      continue;
    }
    auto reader = store_->read(info.path);
    if (!reader.ok()) continue;
    if (Status s = make_segment(info.header.directory_id, topology_bytes_, next_); !s.ok())
      return s;
    auto& writer = next_->writer();
    if (Status s = writer.begin_load(needs_of(info, record_words_), seed_like(info.header.seed),
                                     info.header.incarnation, false);
        !s.ok()) {
      next_.reset();
      return s;
    }
    next_quarantine_.clear();
    next_sink_.emplace(*next_, next_quarantine_, [this] { alive(); });
    auto table = fill_from_snapshot(std::move(*reader), *next_sink_);
    if (table.status().code() == Code::no_space) {
      topology_bytes_ = next_->identity().plan.larger_topology_bytes();
      next_.reset();
      return table.status();
    }
    if (!table.ok()) {
      next_.reset();
      rejected_snapshots_.push_back(info.path);
      log_.warning("snapshot left aside: " + info.path + ": " + table.status().message());
      continue;
    }
    fill_.emplace();
    fill_->purpose = FillPurpose::boot;
    fill_->snapshot = info;
    fill_->table = std::move(*table);
    fill_->incarnation = info.header.incarnation;
    log_.info("loading snapshot " + info.path + ": " + std::to_string(info.header.entries) +
              " entries at version " + std::to_string(info.header.cursor.version));
    begun = true;
    return {};
  }
  return {};
}

Status Syncer::begin_boot_from_source() {
  if (Status s = make_segment(layout_->directory_id, topology_bytes_, next_); !s.ok()) return s;
  // Nothing is known of what this host served before: later than any of that, in whichever history.
  const auto incarnation = static_cast<std::uint64_t>(unix_time_ns() / 1'000'000'000);
  const Status status = begin_read_fill(FillPurpose::boot, incarnation, false);
  if (!status.ok()) {
    next_.reset();
    if (status.code() == Code::no_space) return status;
    source_failed(status);
  }
  return {};
}

}  // namespace fingerpost
