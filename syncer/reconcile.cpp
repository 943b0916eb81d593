#include "syncer/reconcile.h"

#include <utility>

#include "syncer/split_route.h"

namespace fingerpost {
namespace {

constexpr int kStepsPerLook = 128;  // at the clock

}  // namespace

Reconcile::Reconcile(std::unique_ptr<FullRead> read, OwnedSegment& segment,
                     const Quarantine& quarantine)
    : read_(std::move(read)),
      segment_(segment),
      quarantine_(quarantine),
      generation_(segment.writer().generation()),
      seen_(segment.writer().table().slot_count()) {
  repair_.layout = read_->layout();
}

Batch& Reconcile::repair() {
  const Position position = segment_.writer().position();
  repair_.end = {position.version, position.nonce};
  return repair_;
}

Result<bool> Reconcile::step(std::chrono::nanoseconds budget) {
  if (segment_.writer().generation() != generation_) {
    return Status(Code::conflict, "the generation was switched during the comparison");
  }
  const auto until = std::chrono::steady_clock::now() + budget;
  EntryRow row;
  SplitRow split;
  do {
    for (int i = 0; i < kStepsPerLook; ++i) {
      if (!rows_compared_) {
        const Result<bool> more = read_->next(row);
        if (!more.ok()) return more.status();
        if (*more) {
          compare(row);
        } else {
          rows_compared_ = true;
        }
      } else if (!read_to_end_) {
        const Result<bool> more = read_->next_split(split);
        if (!more.ok()) return more.status();
        if (*more) {
          compare(split);
        } else {
          read_to_end_ = true;
        }
      } else if (next_slot_ < seen_.size()) {
        look_for_extra(next_slot_++);
      } else {
        return true;
      }
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

void Reconcile::compare(const EntryRow& row) {
  const auto& table = segment_.writer().table();
  const RowPlace place = place_row(row.id, read_->layout());
  if (!place.why_not.empty()) return;  // quarantined when it came
  RouteFields served;
  if (place.bucket) {
    served = table.fallback(*place.bucket);
  } else {
    const std::uint64_t slot = table.slot_of(row.id);
    if (slot != kNoSlot) {
      seen_[slot] = true;
      served = table.find(row.id);
    }
  }
  const std::uint64_t order =
      served.state == State::split ? table.find_split(row.id).read_at() : served.epoch;
  if (served.state != State::none && order > read_->end().version) return;  // changed since
  const RowRoute routed = route_row(row, place.bucket.has_value(), segment_.writer().topology());
  if (!routed.why_not.empty() || served == routed.route || quarantine_.holds(row.id)) return;
  ++differences_;
  if (served.state != State::none && order >= row.epoch) {
    needs_reload_ = true;
    return;
  }
  repair_.rows.push_back(repair_.keep(row));
}

void Reconcile::compare(const SplitRow& split) {
  const auto& table = segment_.writer().table();
  const EntryParts served(table, split.id);
  if (served.count() != 0) seen_[table.slot_of(split.id)] = true;
  if (served.order() > read_->end().version) return;  // changed since
  const SplitRoute routed = route_split(split, segment_.writer().topology(), served);
  if (!routed.why_not.empty() || quarantine_.holds(split.id)) return;
  SplitFields there = fields_of(table.find_split(split.id));
  there.read_at = split.read_at;
  if (there == *routed.split) return;
  ++differences_;
  // A reading at the same version would differ in nothing, were versions what they say.
  if (served.order() == split.read_at) {
    needs_reload_ = true;
  } else {
    repair_.splits.push_back(repair_.keep(split));
  }
}

void Reconcile::look_for_extra(std::uint64_t slot) {
  if (seen_[slot]) return;
  segment_.writer().table().visit_slot(slot, [&](std::string_view id, const RouteFields&) {
    if (EntryParts(segment_.writer().table(), id).order() > read_->end().version ||
        quarantine_.holds(id)) {
      return;  // came since, or waits to go
    }
    ++differences_;
    repair_.removals.push_back({repair_.keep(id), read_->end().version, false});
  });
}

}  // namespace fingerpost
