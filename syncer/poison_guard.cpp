#include "syncer/poison_guard.h"

#include <algorithm>

#include "syncer/split_route.h"

namespace fingerpost {
namespace {

constexpr std::int64_t kWindowNs = 60'000'000'000;

bool is_suspicious(const EntryRow& row, const DirectoryLayout& layout,
                   const SegmentWriter<StdAtomics>& writer) {
  if (row.by_verb) return false;
  const RowPlace place = place_row(row.id, layout);
  if (!place.why_not.empty()) return false;  // quarantined anyway
  const auto& table = writer.table();
  const EntryParts served =
      place.bucket ? EntryParts(table.fallback(*place.bucket)) : EntryParts(table, row.id);
  if (served.order() >= row.epoch) return false;  // served already
  const RowRoute routed = route_row(row, place.bucket.has_value(), writer.topology());
  return routed.why_not.empty() && takes_away(served, EntryParts(routed.route));
}

// Which parts of `split` are; none if it is served already.
std::vector<bool> suspicious_parts(const SplitRow& split, std::uint64_t approved,
                                   const SegmentWriter<StdAtomics>& writer) {
  std::vector<bool> suspicious(split.parts.size());
  const EntryParts served(writer.table(), split.id);
  for (unsigned k = 0; k < split.parts.size(); ++k) {
    const EntryRow& part = split.parts[k];
    // A part that growth made stands and falls with the one whose shard it inherited.
    const unsigned origin = served.count() == 0 ? k : k % served.count();
    if (origin != k && part.shard == split.parts[origin].shard) {
      suspicious[k] = suspicious[origin];
      continue;
    }
    const RouteFields before = served.for_part(k, static_cast<unsigned>(split.parts.size()));
    if (part.by_verb || part.epoch <= approved || before.epoch >= part.epoch) continue;
    const RowRoute routed = route_row(part, false, writer.topology());
    suspicious[k] =
        routed.why_not.empty() && takes_away(EntryParts(before), EntryParts(routed.route));
  }
  return suspicious;
}

bool is_suspicious(const Removal& removal, const SegmentWriter<StdAtomics>& writer) {
  if (removal.by_verb) return false;
  const EntryParts served(writer.table(), removal.id);
  return served.order() <= removal.version && takes_away(served, EntryParts(RouteFields{}));
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
  std::vector<std::vector<bool>> splits;
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
  for (const SplitRow& split : batch.splits) {
    splits.push_back(suspicious_parts(split, batch.approved, writer));
    suspicious +=
        static_cast<std::uint64_t>(std::count(splits.back().begin(), splits.back().end(), true));
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
  // Their other parts go on.
  for (std::size_t i = 0; i < splits.size(); ++i) batch.splits[i].held = std::move(splits[i]);
  return suspicious;
}

std::uint64_t PoisonGuard::differences(const TableWriter<StdAtomics>& served,
                                       const TableWriter<StdAtomics>& next) {
  std::uint64_t count = 0;
  for (std::uint64_t slot = 0; slot < served.slot_count(); ++slot) {
    served.visit_slot(slot, [&](std::string_view id, const RouteFields& route) {
      count +=
          route.state != State::deleted && takes_away(EntryParts(served, id), EntryParts(next, id));
    });
  }
  const std::uint64_t rules =
      std::min(served.geometry().fallback_count, next.geometry().fallback_count);
  for (std::uint64_t i = 0; i < rules; ++i) {
    count += takes_away(EntryParts(served.fallback(i)), EntryParts(next.fallback(i)));
  }
  return count;
}

}  // namespace fingerpost
