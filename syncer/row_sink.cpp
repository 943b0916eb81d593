#include "syncer/row_sink.h"

#include <algorithm>
#include <random>
#include <string>

#include "shm/batch_order.h"
#include "shm/boot_clock.h"
#include "shm/tenant_id.h"

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

std::uint64_t words_of(const SplitRow& split) {
  return tail_words_of(split.id) + split_record_words(split.parts.size());
}

// no_space · conflict: another seed is needed
Status why_not_loaded(Applied applied, std::string_view id) {
  if (applied == Applied::no_room) {
    return {Code::no_space,
            "the generation under construction is too small for '" + std::string(id) + "'"};
  }
  if (applied == Applied::refused) {
    return {Code::conflict,
            "'" + std::string(id) + "' hashes into a probe chain that is full under this seed"};
  }
  return {};
}

// Empty where it was stored, or something newer is there. In a table that may not grow the chains
// fill up as well, and that is the reason then.
std::string_view why_not_stored(Applied applied, bool may_grow) {
  switch (applied) {
    case Applied::changed:
    case Applied::not_newer:
      break;
    case Applied::full:
      return kWhyFull;
    case Applied::refused:
      return may_grow ? kWhyChain : kWhyNoMemory;
    case Applied::no_room:
      return kWhyNoMemory;
  }
  return {};
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
Applied RowSink::store_with_room(std::uint64_t record_words, Store&& store) {
  Applied applied = store();
  if (applied == Applied::no_room && grew({1, record_words, FallbackKind::none, 0})) {
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
  for (const BatchStep step : kBatchOrder) {
    switch (step) {
      case BatchStep::overrides:
        for (const SplitRow& split : batch.splits) apply_split(split);
        apply_rows(batch, false);
        break;
      case BatchStep::fallback:
        apply_rows(batch, true);
        break;
      case BatchStep::removals:
        for (const Removal& removal : batch.removals) {
          quarantine_.release(removal.id);
          writer().remove(removal.id, removal.version);
        }
        break;
    }
  }
  return {};
}

void RowSink::apply_rows(const Batch& batch, bool of_buckets) {
  for (std::size_t i = 0; i < batch.rows.size(); ++i) {
    if (!of_buckets && i + kRowsAhead < batch.rows.size()) {
      writer().expect(batch.rows[i + kRowsAhead].id);
    }
    const EntryRow& row = batch.rows[i];
    if (row.id.starts_with(kBucketPrefix) != of_buckets) continue;
    apply_row(row, place_row(row.id, batch.layout));
  }
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
  const Applied applied = store_with_room(tail_words_of(row.id) + kRouteRecordWords, [&] {
    return place.bucket ? writer().put_fallback(*place.bucket, routed.route)
                        : writer().put(row.id, routed.route);
  });
  if (const auto why = why_not_stored(applied, growth_refused_.ok()); !why.empty()) {
    quarantine_.put(row, why);
  } else {
    quarantine_.release(row.id);
  }
}

void RowSink::apply_split(const SplitRow& split) {
  const EntryParts served(writer().changed_table(), split.id);
  const SplitRoute routed = route_split(split, writer().topology(), served);
  const bool is_held = std::count(split.held.begin(), split.held.end(), true) != 0;
  if (routed.why_not.empty()) {
    quarantine_.release(split.id);
  } else {
    quarantine_.put(split, routed.missed,
                    is_held ? kWhyWithheld : std::string_view(routed.why_not));
  }
  if (!routed.split) return;
  const Applied applied =
      store_with_room(words_of(split), [&] { return writer().put_split(split.id, *routed.split); });
  if (const auto why = why_not_stored(applied, growth_refused_.ok()); !why.empty()) {
    quarantine_.put(split, split.epoch, why);
  }
}

bool RowSink::has_room_for(const TableNeeds& needs) {
  const auto& table = writer().table();
  return static_cast<double>(table.live() + table.vacant() + needs.entries) <=
             kCrowdedLoad * static_cast<double>(table.slot_count()) &&
         table.geometry().records_words - table.records_end() >= needs.record_words;
}

void RowSink::make_room(const Batch& batch) {
  if (!writer().has_table() || (batch.rows.empty() && batch.splits.empty())) return;
  TableNeeds needs;
  needs.entries = batch.rows.size() + batch.splits.size();
  std::uint64_t split_words = 0;  // each change of a split takes a record of its own
  for (const SplitRow& split : batch.splits) split_words += words_of(split);
  needs.record_words = split_words;
  for (const EntryRow& row : batch.rows)
    needs.record_words += tail_words_of(row.id) + kRouteRecordWords;
  if (has_room_for(needs)) return;
  // Most rows of a batch change what is there; only the others need slots.
  needs = {};
  needs.record_words = split_words;
  for (const SplitRow& split : batch.splits) {
    needs.entries += writer().table().find(split.id).state == State::none;
  }
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
  // Under the same seed the copy is one sweep through both tables; another one is drawn where that
  // is what is needed, and after a chain that is full under this one.
  for (bool reseeds = extra.entries == 0;; reseeds = true) {
    const std::uint64_t seed = reseeds ? draw_seed() : writer().table().generation().seed;
    if (Status s = writer().begin_copy(extra, seed); !s.ok()) {
      writer().add(Counter::rebuild_failures);
      return s;
    }
    if (Status s = finish_copy(); s.ok() || reseeds) return s;
  }
}

Status RowSink::finish_copy() {
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
    store_with_room(kRouteRecordWords, [&] { return writer().put_fallback(i, routed.route); });
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
  if (applied == Applied::full) quarantine_.put(row, kWhyFull);
  return why_not_loaded(applied, row.id);
}

Status RowSink::load(const SplitRow& split) {
  const SplitRoute routed = route_split(split, writer().topology(), EntryParts(RouteFields{}));
  if (!routed.split) {
    quarantine_.put(split, routed.missed, routed.why_not);
    return {};
  }
  const Applied applied = writer().load_split(split.id, *routed.split);
  if (applied == Applied::full) quarantine_.put(split, split.epoch, kWhyFull);
  return why_not_loaded(applied, split.id);
}

}  // namespace fingerpost
