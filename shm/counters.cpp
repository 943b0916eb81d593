#include "shm/counters.h"

#include <array>

namespace fingerpost {

std::string_view to_string(Counter counter) noexcept {
  static constexpr std::array<std::string_view, kCounterCount> kNames = {"entries",
                                                                         "vacant_slots",
                                                                         "quarantined",
                                                                         "withheld",
                                                                         "refused_for_room",
                                                                         "rows_applied",
                                                                         "rows_not_newer",
                                                                         "rows_removed",
                                                                         "syncs",
                                                                         "sync_failures",
                                                                         "reloads",
                                                                         "rebuilds",
                                                                         "rebuild_failures",
                                                                         "reconciliations",
                                                                         "repairs",
                                                                         "history_changes",
                                                                         "topology_changes",
                                                                         "supersedes",
                                                                         "adoptions",
                                                                         "slots_mended",
                                                                         "snapshots_written",
                                                                         "snapshot_failures",
                                                                         "foreign_read_locks",
                                                                         "snapshot_bytes",
                                                                         "snapshot_depth",
                                                                         "snapshot_by_ring"};
  return kNames[static_cast<std::size_t>(counter)];
}

}  // namespace fingerpost
