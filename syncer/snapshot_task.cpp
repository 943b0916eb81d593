#include "syncer/snapshot_task.h"

#include <utility>

namespace fingerpost {
namespace {

constexpr std::uint64_t kSlotsPerLook = 64;  // at the clock

}  // namespace

Result<std::unique_ptr<SnapshotTask>> SnapshotTask::begin(SnapshotStore& store,
                                                          OwnedSegment& segment) {
  auto writer = store.write(segment.identity().directory_id, segment.writer().incarnation());
  if (!writer.ok()) return writer.status();
  std::unique_ptr<SnapshotTask> task(new SnapshotTask(segment, std::move(*writer)));
  const Topology& topology = segment.writer().topology();
  for (std::size_t i = 0; i < topology.names().size(); ++i) {
    const auto index = static_cast<std::uint16_t>(i);
    if (!topology.is_removed(index) && !topology.names()[i].empty()) task->place(index);
  }
  return task;
}

std::uint32_t SnapshotTask::place(std::uint16_t shard) {
  if (shard == kNoShard) return kNoSnapshotShard;
  if (shard >= places_.size()) places_.resize(shard + std::size_t{1}, kNoSnapshotShard);
  if (places_[shard] == kNoSnapshotShard) {
    places_[shard] = static_cast<std::uint32_t>(shards_.size());
    shards_.push_back(shard);
  }
  return places_[shard];
}

std::vector<ShardSpec> SnapshotTask::topology() const {
  std::vector<ShardSpec> specs;
  const auto view = segment_.writer().memory().topology();
  for (const std::uint16_t shard : shards_) specs.push_back(to_spec(view.shard(shard)));
  return specs;
}

Status SnapshotTask::append_entry(std::string_view id, const RouteFields& route) {
  if (route.state == State::split) {
    const SplitView<StdAtomics> split = segment_.writer().table().find_split(id);
    SnapshotRecord record{
        RecordKind::split, 0, kNoSnapshotShard, kNoSnapshotShard, split.epoch(), id, 0,
        split.read_at(),   {}};
    for (unsigned k = 0; k < split.parts(); ++k) {
      const RouteFields part = split.part(k);
      record.parts.push_back({static_cast<std::uint8_t>(part.state), place(part.shard),
                              place(part.target), part.epoch});
    }
    return writer_->append(record);
  }
  return writer_->append_entry(id, static_cast<std::uint8_t>(route.state), place(route.shard),
                               place(route.target), route.epoch);
}

Status SnapshotTask::append_bucket(std::uint64_t index) {
  const RouteFields route = segment_.writer().table().fallback(index);
  if (route.state == State::none) return {};
  return writer_->append_bucket(static_cast<std::uint32_t>(index),
                                static_cast<std::uint8_t>(route.state), place(route.shard),
                                place(route.target), route.epoch);
}

Status SnapshotTask::note(const Batch& batch) {
  if (sealed_) return {};  // it ends before this batch
  const auto& table = segment_.writer().table();
  for (const EntryRow& row : batch.rows) {
    const RowPlace where = place_row(row.id, batch.layout);
    if (!where.why_not.empty()) continue;
    Status status;
    if (where.bucket) {
      status = append_bucket(*where.bucket);
    } else if (const RouteFields route = table.find(row.id); route.state != State::none) {
      status = append_entry(row.id, route);
    }
    if (!status.ok()) return status;
  }
  for (const SplitRow& split : batch.splits) {
    const RouteFields route = table.find(split.id);
    if (route.state == State::none) continue;
    if (Status s = append_entry(split.id, route); !s.ok()) return s;
  }
  for (const Removal& removal : batch.removals) {
    if (Status s = writer_->append_tombstone(removal.id, removal.version); !s.ok()) return s;
  }
  return {};
}

Result<bool> SnapshotTask::step(std::chrono::nanoseconds budget, const SnapshotEnd& end) {
  if (sealed_) return writer_->poll(false);
  if (segment_.writer().generation() != generation_) {
    return Status(Code::conflict, "the generation was switched during the scan");
  }
  const auto& table = segment_.writer().table();
  const bool has_buckets = segment_.writer().fallback_kind() == FallbackKind::buckets;
  const std::uint64_t buckets = has_buckets ? table.geometry().fallback_count : 0;
  const auto until = std::chrono::steady_clock::now() + budget;
  Status status;
  while (next_slot_ < table.slot_count() || next_bucket_ < buckets) {
    if (writer_->would_wait() || std::chrono::steady_clock::now() >= until) return false;
    for (std::uint64_t i = 0; i < kSlotsPerLook && status.ok(); ++i) {
      if (next_bucket_ < buckets) {
        status = append_bucket(next_bucket_++);
      } else if (next_slot_ < table.slot_count()) {
        table.visit_slot(next_slot_++, [&](std::string_view id, const RouteFields& route) {
          status = append_entry(id, route);
        });
      }
    }
    if (!status.ok()) return status;
  }
  SnapshotEnd sealed = end;
  sealed.meta.topology = topology();
  sealed.seed = table.generation().seed;
  version_ = end.cursor.version;
  if (Status s = writer_->seal(sealed); !s.ok()) return s;
  sealed_ = true;
  return false;
}

}  // namespace fingerpost
