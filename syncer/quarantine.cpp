#include "syncer/quarantine.h"

#include <algorithm>

namespace fingerpost {

void Quarantine::put(const EntryRow& row, std::string_view why) {
  rows_[std::string(row.id)] = {row.epoch,
                                std::string(why),
                                false,
                                row.by_verb,
                                std::string(row.shard),
                                std::string(row.state),
                                std::string(row.target),
                                nullptr};
}

void Quarantine::put(const SplitRow& split, std::uint64_t version, std::string_view why) {
  auto kept = std::make_shared<Batch>();
  kept->splits.push_back(kept->keep(split));
  rows_[std::string(split.id)] = {version, std::string(why), false, false, {}, {}, {}, kept};
}

void Quarantine::put(const Removal& removal, std::string_view why) {
  rows_[std::string(removal.id)] = {
      removal.version, std::string(why), true, removal.by_verb, {}, {}, {}, nullptr};
}

void Quarantine::release(std::string_view id) {
  if (const auto found = rows_.find(id); found != rows_.end()) rows_.erase(found);
}

void Quarantine::replay_into(Batch& batch) {
  for (const EntryRow& row : batch.rows) release(row.id);
  for (const SplitRow& split : batch.splits) release(split.id);
  for (const Removal& removal : batch.removals) release(removal.id);
  std::vector<EntryRow> rows;
  std::vector<Removal> removals;
  for (const auto& [id, row] : rows_) {
    if (row.is_removal) {
      removals.push_back({batch.keep(id), row.version, row.by_verb});
    } else if (row.split) {
      SplitRow split = batch.keep(row.split->splits.front());
      split.held.clear();
      batch.splits.push_back(std::move(split));
    } else {
      rows.push_back({batch.keep(id), batch.keep(row.shard), batch.keep(row.state),
                      batch.keep(row.target), row.version, row.by_verb});
    }
  }
  batch.rows.insert(batch.rows.begin(), rows.begin(), rows.end());
  batch.removals.insert(batch.removals.begin(), removals.begin(), removals.end());
}

std::uint64_t Quarantine::count_of(std::string_view why) const {
  return static_cast<std::uint64_t>(std::count_if(
      rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.why == why; }));
}

std::uint64_t Quarantine::replay_from() const {
  std::uint64_t lowest = 0;
  for (const auto& [id, row] : rows_) {
    if (lowest == 0 || row.version < lowest) lowest = row.version;
  }
  return lowest;
}

}  // namespace fingerpost
