#include "syncer/table_fill.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace fingerpost {
namespace {

constexpr std::uint64_t kRowsPerLook = 256;  // at the clock

// Runs `row(done)` until it says there is no more, the budget is used up or it fails.
template <class Row>
Result<bool> in_slices(std::chrono::nanoseconds budget, Row&& row) {
  const auto until = std::chrono::steady_clock::now() + budget;
  for (;;) {
    for (std::uint64_t i = 0; i < kRowsPerLook; ++i) {
      const Result<bool> more = row();
      if (!more.ok()) return more.status();
      if (!*more) return true;
    }
    if (std::chrono::steady_clock::now() >= until) return false;
  }
}

class ReadFill final : public TableFill {
 public:
  ReadFill(FullRead& read, RowSink& sink) : read_(read), sink_(sink) { total_ = read.row_count(); }

  Result<bool> step(std::chrono::nanoseconds budget) override {
    return in_slices(budget, [this]() -> Result<bool> {
      const Result<bool> more = rows_done_ ? read_.next_split(split_) : read_.next(row_);
      if (!more.ok()) return more;
      if (!*more) {
        if (rows_done_) return false;
        rows_done_ = true;
        return true;
      }
      Status s = rows_done_ ? sink_.load(split_) : sink_.load(row_, read_.layout());
      if (!s.ok()) return s;
      ++done_;
      return true;
    });
  }

 private:
  FullRead& read_;
  RowSink& sink_;
  EntryRow row_;
  SplitRow split_;
  bool rows_done_ = false;
};

class SnapshotFill final : public TableFill {
 public:
  SnapshotFill(std::unique_ptr<SnapshotReader> reader, RowSink& sink,
               std::vector<std::uint16_t> shards)
      : reader_(std::move(reader)), sink_(sink), shards_(std::move(shards)) {
    total_ = reader_->info().header.entries + reader_->info().header.tombstones;
  }

  Result<bool> step(std::chrono::nanoseconds budget) override {
    return in_slices(budget, [this]() -> Result<bool> {
      while (next_ahead_ == ahead_count_) {
        if (look_ahead()) continue;
        const Result<bool> more = reader_->next_block(block_);
        if (!more.ok()) return more.status();
        if (*more) continue;
        if (Status s = reader_->finish(); !s.ok()) return s;
        return false;
      }
      if (Status s = store(ahead_[next_ahead_++]); !s.ok()) return s;
      ++done_;
      return true;
    });
  }
  IoStats io_stats() const override { return reader_->io_stats(); }

 private:
  // The next records of the block, so that the lines they go to are on their way while others are
  // stored. false: the block has no more.
  bool look_ahead() {
    next_ahead_ = 0;
    ahead_count_ = 0;
    while (ahead_count_ < ahead_.size() && block_.next(ahead_[ahead_count_])) {
      sink_.writer().expect_load(ahead_[ahead_count_].id);
      ++ahead_count_;
    }
    return ahead_count_ != 0;
  }

  std::uint16_t index(std::uint32_t place) const {
    return place < shards_.size() ? shards_[place] : kNoShard;
  }

  // Of a record or of a part in one.
  template <class Stored>
  RouteFields route_of(const Stored& stored) const {
    return {static_cast<State>(stored.state), index(stored.shard), index(stored.target),
            stored.epoch};
  }

  Status store(const SnapshotRecord& record) {
    auto& writer = sink_.writer();
    if (record.kind == RecordKind::tombstone) {
      writer.remove(record.id, record.epoch);
      return {};
    }
    const RouteFields route = route_of(record);
    const bool is_bucket = record.kind == RecordKind::bucket;
    if (is_bucket ? record.bucket >= writer.next_table().geometry().fallback_count
                  : why_not_tenant_id(record.id).has_value()) {
      return {Code::corrupt, reader_->info().path + " holds an entry that no directory can have"};
    }
    SplitFields split{record.epoch, record.read_at, {}};
    for (const SnapshotPart& part : record.parts) split.parts.push_back(route_of(part));
    switch (is_bucket             ? writer.load_fallback(record.bucket, route)
            : split.parts.empty() ? writer.load(record.id, route)
                                  : writer.load_split(record.id, split)) {
      case Applied::changed:
      case Applied::not_newer:
        return {};
      case Applied::full:
        return {Code::corrupt, reader_->info().path + " holds more entries than it says"};
      case Applied::no_room:
        return {Code::no_space, "the generation under construction is too small"};
      case Applied::refused:
        break;
    }
    return {Code::conflict, "an id of " + reader_->info().path + " hashes into a full probe chain"};
  }

  std::unique_ptr<SnapshotReader> reader_;
  RowSink& sink_;
  std::vector<std::uint16_t> shards_;  // place in the snapshot → index in the segment
  BlockView block_;
  std::array<SnapshotRecord, 32> ahead_;  // their ids lie in the block
  std::size_t next_ahead_ = 0;
  std::size_t ahead_count_ = 0;
};

// The shards that the directory names now, as far as `segment` knows.
std::vector<ShardSpec> named_shards(OwnedSegment& segment) {
  const auto view = segment.writer().memory().topology();
  const Topology& topology = segment.writer().topology();
  std::vector<ShardSpec> specs;
  for (std::size_t i = 0; i < topology.names().size(); ++i) {
    if (topology.is_removed(static_cast<std::uint16_t>(i))) continue;
    if (const ShardView shard = view.shard(i)) specs.push_back(to_spec(shard));
  }
  return specs;
}

class SegmentFill final : public TableFill {
 public:
  SegmentFill(OwnedSegment& from, OwnedSegment& to, std::vector<std::uint16_t> shards)
      : from_(from), to_(to), generation_(from.writer().generation()), shards_(std::move(shards)) {
    total_ = from.writer().table().slot_count();
    const auto& table = from.writer().table();
    for (std::uint64_t i = 0; i < table.geometry().fallback_count; ++i) {
      const RouteFields route = table.fallback(i);
      if (route.state != State::none) to_.writer().load_fallback(i, moved(route));
    }
  }

  Result<bool> step(std::chrono::nanoseconds budget) override {
    return in_slices(budget, [this]() -> Result<bool> {
      if (!carried_.ok()) return carried_;
      if (done_ == total_) {
        // What was carried over for a route's sake is as removed there as it was here.
        if (Status s = to_.writer().publish_topology(named_shards(from_)); !s.ok()) return s;
        return false;
      }
      if (from_.writer().generation() != generation_) {
        return Status(Code::conflict, from_.path() + " switched generations while it was copied");
      }
      Applied worst = Applied::changed;
      from_.writer().table().visit_slot(done_++, [&](std::string_view id,
                                                     const RouteFields& route) {
        worst = std::max(worst, route.state == State::split ? to_.writer().load_split(id, moved(id))
                                                            : to_.writer().load(id, moved(route)));
      });
      if (worst > Applied::not_newer) {
        return Status(Code::no_space,
                      "the successor of " + from_.path() + " cannot hold its entries");
      }
      return true;
    });
  }

 private:
  RouteFields moved(RouteFields route) {
    route.shard = index(route.shard);
    route.target = index(route.target);
    return route;
  }
  SplitFields moved(std::string_view id) {
    SplitFields split = fields_of(from_.writer().table().find_split(id));
    for (RouteFields& part : split.parts) part = moved(part);
    return split;
  }
  std::uint16_t index(std::uint16_t old) {
    if (old >= shards_.size()) return kNoShard;
    if (shards_[old] == kNoShard) carry_over(old);
    return shards_[old];
  }
  // A shard that the directory has removed, but a route still names.
  void carry_over(std::uint16_t old) {
    const ShardView shard = from_.writer().memory().topology().shard(old);
    if (!shard) return;
    if (Status s = to_.writer().add_shards({to_spec(shard)}); !s.ok()) carried_ = s;
    shards_[old] = to_.writer().topology().index_of(std::string(shard.name()));
  }

  OwnedSegment& from_;
  OwnedSegment& to_;
  std::uint64_t generation_;
  std::vector<std::uint16_t> shards_;  // old index → new index
  Status carried_;
};

// Words for split tenants of so many parts in all, of which each has two at least.
std::uint64_t split_words_for(std::uint64_t parts) {
  return parts * kPartWords + parts / 2 * kSplitHeadWords;
}

// Words for ids of that many bytes in all, if they are about equally long.
std::uint64_t tail_words_for(std::uint64_t ids, std::uint64_t id_bytes) {
  const std::uint64_t average = ids == 0 ? 0 : id_bytes / ids;
  return average > kLongIdInlineBytes ? ids * ((average - kLongIdInlineBytes) / kWordBytes + 1) : 0;
}

}  // namespace

TableNeeds needs_of(const FullRead& read, std::uint64_t record_words) {
  return {read.row_count(), record_words + split_words_for(read.part_count()),
          to_kind(read.layout().fallback), fallback_count(read.layout())};
}

TableNeeds needs_of(const SnapshotInfo& snapshot, std::uint64_t record_words) {
  const SnapshotHeader& header = snapshot.header;
  const std::uint64_t heads = (header.entries + header.tombstones) * kSnapshotRecordHeadBytes;
  const std::uint64_t others = heads + header.parts * kSnapshotPartBytes;
  const std::uint64_t id_bytes = header.blocks_bytes > others ? header.blocks_bytes - others : 0;
  return {header.entries,
          std::max(record_words, tail_words_for(header.entries, id_bytes)) +
              split_words_for(header.parts),
          to_kind(snapshot.meta.layout.fallback), fallback_count(snapshot.meta.layout)};
}

std::unique_ptr<TableFill> fill_from_read(FullRead& read, RowSink& sink) {
  sink.load_hash_list(read.layout());
  return std::make_unique<ReadFill>(read, sink);
}

Result<std::unique_ptr<TableFill>> fill_from_snapshot(std::unique_ptr<SnapshotReader> reader,
                                                      RowSink& sink) {
  const SnapshotMeta& meta = reader->info().meta;
  if (Status s = sink.writer().add_shards(meta.topology); !s.ok()) return s;
  std::vector<std::uint16_t> shards;
  for (const ShardSpec& spec : meta.topology)
    shards.push_back(sink.writer().topology().index_of(spec.name));
  sink.load_hash_list(meta.layout);
  return std::unique_ptr<TableFill>(
      std::make_unique<SnapshotFill>(std::move(reader), sink, std::move(shards)));
}

Result<std::unique_ptr<TableFill>> fill_from_segment(OwnedSegment& from, OwnedSegment& to) {
  if (Status s = to.writer().add_shards(named_shards(from)); !s.ok()) return s;
  std::vector<std::uint16_t> shards;
  for (const std::string& name : from.writer().topology().names())
    shards.push_back(to.writer().topology().index_of(name));
  return std::unique_ptr<TableFill>(std::make_unique<SegmentFill>(from, to, std::move(shards)));
}

}  // namespace fingerpost
