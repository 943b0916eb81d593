// Rows that could not be applied: kept whole, never dropped. The published version advances past
// them; replay_from, the lowest version among them, does not, so whoever goes on from the segment
// or a snapshot alone reads them again.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "syncer/batch.h"

namespace fingerpost {

// Why a row waits for an approval.
inline constexpr std::string_view kWhyWithheld = "is withheld by the poison guard";
// Why a row waits for others to go.
inline constexpr std::string_view kWhyFull = "finds the configured capacity reached";
inline constexpr std::string_view kWhyNoMemory = "finds no memory for a larger table";

class Quarantine {
 public:
  struct Row {
    std::uint64_t version = 0;
    std::string why;
    bool is_removal = false;
    bool by_verb = false;
    std::string shard;  // these three of a row only
    std::string state;
    std::string target;
    std::shared_ptr<Batch> split;  // of a split tenant: holds it, alone
  };

  void put(const EntryRow& row, std::string_view why);
  // `version`: of the oldest of its parts that could not be applied.
  void put(const SplitRow& split, std::uint64_t version, std::string_view why);
  void put(const Removal& removal, std::string_view why);
  void release(std::string_view id);
  void clear() { rows_.clear(); }

  // Puts everything that is held in front of what `batch` brings, so that it is tried again, but
  // for the ids that `batch` says something newer of: those are released.
  void replay_into(Batch& batch);

  bool holds(std::string_view id) const { return rows_.find(id) != rows_.end(); }
  std::uint64_t count_of(std::string_view why) const;
  // 0: nothing to replay.
  std::uint64_t replay_from() const;
  const std::map<std::string, Row, std::less<>>& rows() const { return rows_; }

 private:
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace fingerpost
