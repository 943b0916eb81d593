// Rows that could not be applied: kept in mind, never dropped. The published version advances past
// them; replay_from, the lowest version among them, does not, so whoever goes on from here reads
// them again.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fingerpost {

// Why a row waits for others to go.
inline constexpr std::string_view kWhyFull = "finds the configured capacity reached";

class Quarantine {
 public:
  struct Row {
    std::uint64_t version = 0;
    std::string why;
  };

  void put(std::string_view id, std::uint64_t version, std::string_view why) {
    rows_[std::string(id)] = {version, std::string(why)};
  }
  void release(std::string_view id) {
    if (const auto found = rows_.find(id); found != rows_.end()) rows_.erase(found);
  }
  void clear() { rows_.clear(); }
  bool holds(std::string_view id) const { return rows_.find(id) != rows_.end(); }
  std::uint64_t count_of(std::string_view why) const {
    return static_cast<std::uint64_t>(std::count_if(
        rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.why == why; }));
  }

  // 0: nothing to replay.
  std::uint64_t replay_from() const {
    std::uint64_t lowest = 0;
    for (const auto& [id, row] : rows_) {
      if (lowest == 0 || row.version < lowest) lowest = row.version;
    }
    return lowest;
  }
  const std::map<std::string, Row, std::less<>>& rows() const { return rows_; }

 private:
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace fingerpost
