// What was committed, as the process that commits writes it down: shared between the demo's
// processes by a mapping that they inherit. A worker holds every answer against it.
//
// One writer. A record is complete before it is counted, its commit time comes after the COMMIT: so
// whatever a syncer can have read is in the ledger, and only what is surely committed has a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "shm/route_fields.h"

namespace fingerpost::demo {

inline constexpr std::uint64_t kRecordsMax = 16;  // changes of one entry in one run
inline constexpr std::size_t kShards = 8;
inline constexpr std::size_t kBuckets = 1'024;
inline constexpr std::size_t kWorkers = 4;
inline constexpr std::int64_t kVisibleWithinNs = 1'000'000'000;  // a commit, or a restarted syncer

// What a tenant or a bucket has: a shard, and a state.
constexpr std::uint64_t ledger_value(std::uint64_t shard, State state) {
  return shard << 8 | static_cast<std::uint64_t>(state);
}
constexpr std::uint64_t shard_of(std::uint64_t value) {
  return value >> 8;
}
constexpr State state_of(std::uint64_t value) {
  return static_cast<State>(value & 0xff);
}

struct Record {
  std::atomic<std::uint64_t> epoch{0};     // of a shard: 1, 2, … as its address changes
  std::atomic<std::uint64_t> value{0};     // as ledger_value(); of a shard: its address's number
  std::atomic<std::int64_t> commit_ns{0};  // CLOCK_MONOTONIC; 0: perhaps not committed yet
};

class Entry {
 public:
  // Before the COMMIT.
  void announce(std::uint64_t epoch, std::uint64_t value) {
    Record& record = records_[count_.load()];
    record.epoch.store(epoch);
    record.value.store(value);
    record.commit_ns.store(0);
    count_.fetch_add(1);
  }
  // After it.
  void committed(std::int64_t now_ns) { records_[count_.load() - 1].commit_ns.store(now_ns); }

  bool is_full() const { return !has_room_for(1); }
  bool has_room_for(std::uint64_t records) const { return count_.load() + records <= kRecordsMax; }
  std::uint64_t value() const { return records_[count_.load() - 1].value.load(); }
  bool has(std::uint64_t epoch, std::uint64_t value) const {
    for (std::uint64_t i = count_.load(); i-- > 0;) {
      if (records_[i].epoch.load() == epoch && records_[i].value.load() == value) return true;
    }
    return false;
  }
  // The epoch of the newest record that was committed before `then_ns`.
  std::uint64_t epoch_at(std::int64_t then_ns) const {
    for (std::uint64_t i = count_.load(); i-- > 0;) {
      const std::int64_t at = records_[i].commit_ns.load();
      if (at != 0 && at < then_ns) return records_[i].epoch.load();
    }
    return 0;
  }
  std::uint64_t epoch_of(std::uint64_t value) const {  // 0: never had it
    for (std::uint64_t i = count_.load(); i-- > 0;) {
      if (records_[i].value.load() == value) return records_[i].epoch.load();
    }
    return 0;
  }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::array<Record, kRecordsMax> records_;
};

enum class Phase : std::uint32_t { before_kill = 0, after_kill = 1 };

struct PhaseFigures {
  std::atomic<std::uint64_t> resolves{0};
  std::atomic<std::uint64_t> over_a_millisecond{0};
  std::atomic<std::int64_t> slowest_ns{0};
};

struct alignas(64) WorkerFigures {
  PhaseFigures phases[2];
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> undetermined{0};
  std::atomic<std::int64_t> rss_anon_kib{-1};  // grown by since before the segment was mapped
};

struct Board {
  std::atomic<bool> stop{false};
  std::atomic<Phase> phase{Phase::before_kill};
  std::atomic<std::int64_t> syncer_up_ns{
      0};  // since when; 0: it is dead, and nothing need become visible
  std::array<WorkerFigures, kWorkers> workers;
  std::array<Entry, kShards> shards;  // their addresses
  std::array<Entry, kBuckets> buckets;
};

std::int64_t monotonic_ns();

// The board and the entries behind it, in memory that children of fork() share.
class Ledger {
 public:
  explicit Ledger(std::size_t tenants);

  Board& board() { return *board_; }
  Entry& tenant(std::size_t i) { return tenants_[i]; }
  std::size_t tenants() const { return count_; }

 private:
  Board* board_;
  Entry* tenants_;
  std::size_t count_;
};

// Resolves `ids`, and ids that only buckets know, until the board says stop; every answer is
// checked. Returns the exit status of the worker process.
int run_worker(const std::string& segment, const std::vector<std::string>& ids, Ledger& ledger,
               std::size_t number);

}  // namespace fingerpost::demo
