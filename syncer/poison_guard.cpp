#include "syncer/poison_guard.h"

#include <algorithm>

#include "syncer/row_route.h"

namespace fingerpost {
namespace {

constexpr std::int64_t kWindowNs = 60'000'000'000;

// Whether going from `served` to `next` takes a tenant away from where its data is.
bool takes_away(const RouteFields& served, State next_state, std::uint16_t next_shard) {
  if (served.state == State::none || served.state == State::deleted) return false;
  return next_state == State::none || next_state == State::deleted || next_shard != served.shard;
}

bool is_suspicious(const EntryRow& row, const DirectoryLayout& layout,
                   const SegmentWriter<StdAtomics>& writer) {
  if (row.by_verb) return false;
  const RowPlace place = place_row(row.id, layout);
  if (!place.why_not.empty()) return false;  // quarantined anyway
  const auto& table = writer.table();
  const RouteFields served = place.bucket ? table.fallback(*place.bucket) : table.find(row.id);
  if (served.epoch >= row.epoch) return false;  // served already
  const RowRoute routed = route_row(row, place.bucket.has_value(), writer.topology());
  return routed.why_not.empty() && takes_away(served, routed.route.state, routed.route.shard);
}

bool is_suspicious(const Removal& removal, const SegmentWriter<StdAtomics>& writer) {
  if (removal.by_verb) return false;
  const RouteFields served = writer.table().find(removal.id);
  return served.epoch <= removal.version && takes_away(served, State::none, kNoShard);
}

}  // namespace

std::uint64_t PoisonGuard::passed_lately(std::int64_t now_ns) {
  while (!passed_.empty() && now_ns - passed_.front().at_ns > kWindowNs) passed_.pop_front();
  std::uint64_t count = 0;
  for (const Passed& passed : passed_) count += passed.count;
  return count;
}

std::string how_to_approve(std::uint64_t version) {
  return "if that is meant: fingerpost approve " + std::to_string(version) +
         " (for every host; --this-host NAME for this one)";
}

std::uint64_t PoisonGuard::screen(Batch& batch, const SegmentWriter<StdAtomics>& writer,
                                  Quarantine& quarantine, std::int64_t now_ns) {
  const auto waits = [&](std::uint64_t version) { return version > batch.approved; };
  std::uint64_t suspicious = 0;
  std::vector<bool> rows(batch.rows.size());
  std::vector<bool> removals(batch.removals.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const EntryRow& row = batch.rows[i];
    rows[i] = waits(row.epoch) && is_suspicious(row, batch.layout, writer);
    suspicious += rows[i];
  }
  for (std::size_t i = 0; i < removals.size(); ++i) {
    const Removal& removal = batch.removals[i];
    removals[i] = waits(removal.version) && is_suspicious(removal, writer);
    suspicious += removals[i];
  }
  if (suspicious == 0) return 0;
  if (suspicious + passed_lately(now_ns) <= limit(writer.table().live())) {
    passed_.push_back({now_ns, suspicious});
    return 0;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]) {
      quarantine.put(batch.rows[i], kWhyWithheld);
    } else {
      batch.rows[kept++] = batch.rows[i];
    }
  }
  batch.rows.resize(kept);
  kept = 0;
  for (std::size_t i = 0; i < removals.size(); ++i) {
    if (removals[i]) {
      quarantine.put(batch.removals[i], kWhyWithheld);
    } else {
      batch.removals[kept++] = batch.removals[i];
    }
  }
  batch.removals.resize(kept);
  return suspicious;
}

std::uint64_t PoisonGuard::differences(const TableWriter<StdAtomics>& served,
                                       const TableWriter<StdAtomics>& next) {
  std::uint64_t count = 0;
  for (std::uint64_t slot = 0; slot < served.slot_count(); ++slot) {
    served.visit_slot(slot, [&](std::string_view id, const RouteFields& route) {
      const RouteFields there = next.find(id);
      count += takes_away(route, there.state, there.shard);
    });
  }
  const std::uint64_t rules =
      std::min(served.geometry().fallback_count, next.geometry().fallback_count);
  for (std::uint64_t i = 0; i < rules; ++i) {
    const RouteFields there = next.fallback(i);
    count += takes_away(served.fallback(i), there.state, there.shard);
  }
  return count;
}

}  // namespace fingerpost
