#include "syncer/row_sink.h"

#include <random>
#include <string>

#include "shm/boot_clock.h"

namespace fingerpost {
namespace {

constexpr std::chrono::milliseconds kSlice{1};
constexpr std::int64_t kReseedEveryNs =
    60'000'000'000;  // a hostile set of ids must not keep us rebuilding

// A rebuild that is due (at a lower load) goes on in slices while changes are applied. Only a batch
// that would fill the table beyond this waits for room to be made at once.
constexpr double kCrowdedLoad = 0.92;

constexpr std::size_t kRowsAhead = 8;  // whose lines are on their way while one is put

constexpr std::string_view kWhyChain = "hashes into a probe chain that is full under two seeds";

std::uint64_t tail_words_of(std::string_view id) {
  return IdShape<StdAtomics>::tail_words(id.size());
}

}  // namespace

std::uint64_t draw_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

FallbackKind to_kind(Fallback fallback) {
  switch (fallback) {
    case Fallback::none:
      break;
    case Fallback::buckets:
      return FallbackKind::buckets;
    case Fallback::hash:
      return FallbackKind::hash;
  }
  return FallbackKind::none;
}

std::uint64_t fallback_count(const DirectoryLayout& layout) {
  return layout.fallback == Fallback::hash ? layout.hash_shards.size() : layout.buckets;
}

template <class Store>
Applied RowSink::store_with_room(std::uint64_t tail_words, Store&& store) {
  Applied applied = store();
  if (applied == Applied::no_room &&
      grew({1, tail_words + kRouteRecordWords, FallbackKind::none, 0})) {
    applied = store();
  }
  if (applied == Applied::refused && boot_time_ns() >= next_reseed_ns_) {
    next_reseed_ns_ = boot_time_ns() + kReseedEveryNs;
    if (grew({})) applied = store();
  }
  return applied;
}

Status RowSink::apply(const Batch& batch) {
  growth_refused_ = {};
  if (batch.topology) {
    if (Status s = writer().publish_topology(*batch.topology); !s.ok()) return s;
  }
  make_room(batch);
  apply_hash_list(batch.layout);
  std::vector<std::pair<const EntryRow*, RowPlace>> buckets;
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    if (i + kRowsAhead < batch.rows.size()) writer().expect(batch.rows[i + kRowsAhead].id);
    const EntryRow& row = batch.rows[i];
    const RowPlace place = place_row(row.id, batch.layout);
    if (place.bucket) {
      buckets.emplace_back(&row, place);
    } else {
      apply_row(row, place);
    }
  }
  for (const auto& [row, place] : buckets) apply_row(*row, place);
  for (const Removal& removal : batch.removals) {
    quarantine_.release(removal.id);
    writer().remove(removal.id, removal.version);
  }
  return {};
}

void RowSink::apply_row(const EntryRow& row, const RowPlace& place) {
  if (!place.why_not.empty()) {
    quarantine_.put(row, place.why_not);
    return;
  }
  const RowRoute routed = route_row(row, place.bucket.has_value(), writer().topology());
  if (!routed.why_not.empty()) {
    quarantine_.put(row, routed.why_not);
    return;
  }
  const Applied applied = store_with_room(tail_words_of(row.id), [&] {
    return place.bucket ? writer().put_fallback(*place.bucket, routed.route)
                        : writer().put(row.id, routed.route);
  });
  switch (applied) {
    case Applied::changed:
    case Applied::not_newer:
      quarantine_.release(row.id);
      break;
    case Applied::full:
      quarantine_.put(row, kWhyFull);
      break;
    case Applied::refused:
      quarantine_.put(row, kWhyChain);
      break;
    case Applied::no_room:
      quarantine_.put(row, kWhyNoMemory);
      break;
  }
}

bool RowSink::has_room_for(const TableNeeds& needs) {
  const auto& table = writer().table();
  return static_cast<double>(table.live() + table.vacant() + needs.entries) <=
             kCrowdedLoad * static_cast<double>(table.slot_count()) &&
         table.geometry().records_words - table.records_end() >= needs.record_words;
}

void RowSink::make_room(const Batch& batch) {
  if (!writer().has_table() || batch.rows.empty()) return;
  TableNeeds needs;
  needs.entries = batch.rows.size();
  for (const EntryRow& row : batch.rows)
    needs.record_words += tail_words_of(row.id) + kRouteRecordWords;
  if (has_room_for(needs)) return;
  // Most rows of a batch change what is there; only the others need slots.
  needs = {};
  for (const EntryRow& row : batch.rows) {
    if (!row.target.empty()) needs.record_words += kRouteRecordWords;
    if (writer().table().find(row.id).state != State::none) continue;
    ++needs.entries;
    needs.record_words += tail_words_of(row.id);
  }
  const std::uint64_t capacity = segment_.identity().plan.capacity;
  const std::uint64_t live = writer().table().live();
  needs.entries = std::min(needs.entries, capacity > live ? capacity - live : 0);
  if ((needs.entries != 0 || needs.record_words != 0) && !has_room_for(needs)) grew(needs);
}

bool RowSink::grew(const TableNeeds& extra) {
  if (growth_refused_.ok()) growth_refused_ = grow(extra);
  return growth_refused_.ok();
}

Status RowSink::grow(const TableNeeds& extra) {
  if (!writer().has_table())
    return {Code::no_space, "the generation under construction is too small"};
  if (Status s = writer().begin_copy(extra, draw_seed()); !s.ok()) {
    writer().add(Counter::rebuild_failures);
    return s;
  }
  for (;;) {
    const auto done = writer().step_copy(kSlice);
    if (!done.ok()) return done.status();
    alive_();
    if (*done) break;
  }
  writer().switch_generation();
  return {};
}

void RowSink::apply_hash_list(const DirectoryLayout& layout) {
  if (layout.fallback != Fallback::hash) return;
  for (std::size_t i = 0; i < layout.hash_shards.size(); ++i) {
    EntryRow row;
    row.shard = layout.hash_shards[i];
    row.state = to_string(State::active);
    row.epoch = layout.epoch;
    const RowRoute routed = route_row(row, true, writer().topology());
    if (!routed.why_not.empty()) continue;  // unknown until the topology has it
    if (writer().readable_table().fallback(i) == routed.route) continue;
    store_with_room(0, [&] { return writer().put_fallback(i, routed.route); });
  }
}

void RowSink::load_hash_list(const DirectoryLayout& layout) {
  if (layout.fallback != Fallback::hash) return;
  for (std::size_t i = 0; i < layout.hash_shards.size(); ++i) {
    const std::uint16_t shard = writer().topology().index_of(layout.hash_shards[i]);
    if (shard != kNoShard)
      writer().load_fallback(i, {State::active, shard, kNoShard, layout.epoch});
  }
}

Status RowSink::load(const EntryRow& row, const DirectoryLayout& layout) {
  const RowPlace place = place_row(row.id, layout);
  const RowRoute routed = place.why_not.empty()
                              ? route_row(row, place.bucket.has_value(), writer().topology())
                              : RowRoute{{}, place.why_not};
  if (!routed.why_not.empty()) {
    quarantine_.put(row, routed.why_not);
    return {};
  }
  const Applied applied = place.bucket ? writer().load_fallback(*place.bucket, routed.route)
                                       : writer().load(row.id, routed.route);
  switch (applied) {
    case Applied::changed:
    case Applied::not_newer:
      return {};
    case Applied::full:
      quarantine_.put(row, kWhyFull);
      return {};
    case Applied::no_room:
      return {Code::no_space,
              "the generation under construction is too small for '" + std::string(row.id) + "'"};
    case Applied::refused:
      break;
  }
  return {Code::conflict,
          "'" + std::string(row.id) + "' hashes into a probe chain that is full under this seed"};
}

}  // namespace fingerpost
