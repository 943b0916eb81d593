// The words of ControlBlock::counters. Counters only grow while a segment lives; gauges say what is
// now.
#pragma once

#include <cstdint>
#include <string_view>

namespace fingerpost {

enum class Counter : std::uint8_t {
  // Gauges.
  entries,               // overrides in the live generation
  vacant_slots,          // slots that may be used again
  quarantined,           // rows of the directory that could not be applied
  withheld,              // rows that the poison guard holds back
  refused_for_room,  // quarantined rows that found no room: capacity reached, or no memory
  // Counters.
  rows_applied,    // routes stored
  rows_not_newer,  // rows ignored because the table had the same or a newer epoch
  rows_removed,
  syncs,  // successful reads of the directory to its end
  sync_failures,
  reloads,   // whole reads of the directory that were published
  rebuilds,  // generations published by growth or clean-up
  rebuild_failures,
  reconciliations,   // whole comparisons with the directory
  repairs,           // entries that they found to differ
  history_changes,   // the directory turned out to have another history
  topology_changes,  // topologies published
  supersedes,        // successor segments published
  adoptions,         // times a restarted syncer took this segment over
  slots_mended,      // slots that an adoption had to repair
  snapshots_written,
  snapshot_failures,
  foreign_read_locks,  // read locks of workers met on the segment, ignored
  // Gauges of the last snapshot that was written or loaded.
  snapshot_bytes,
  snapshot_depth,    // requests in flight at most
  snapshot_by_ring,  // 1: through io_uring · 0: by plain calls
  count_,
};

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::count_);

// The counter's name as status prints it, for example "rows_applied". Static lifetime.
std::string_view to_string(Counter counter) noexcept;

}  // namespace fingerpost
