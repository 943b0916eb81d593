// What fingerpostd can be told in a file or on the command line: one table, from which both are
// read, and which says what SIGHUP reads again.
//
// Pure functions but for the names of users and groups, which are looked up.
#pragma once

#include <chrono>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shm/status.h"
#include "syncer/log.h"
#include "syncer/syncer.h"

namespace fingerpost {

struct DaemonSettings {
  SyncerOptions syncer;
  Log::Format log_format = Log::Format::text;
  Log::Level log_level = Log::Level::info;
  std::chrono::milliseconds start_jitter{0};
};

struct Setting {
  enum class Kind : std::uint8_t { text, number, duration };

  std::string_view key;         // in the file; --key, with dashes, on the command line
  std::string_view value_name;  // in --help
  std::string_view help;
  Kind kind;
  bool live;  // SIGHUP reads it again
  Status (*store)(std::string_view value, DaemonSettings& settings);
};

std::span<const Setting> all_settings();
const Setting* find_setting(std::string_view key);
std::string flag_of(std::string_view key);  // "--poll-interval"

struct GivenValue {
  std::string value;
  std::string where;  // "orders.toml:7: poll_interval", "--poll-interval"
};
using GivenValues = std::map<std::string, GivenValue, std::less<>>;  // by key

// Puts the values into `settings`, whose other members stay. What was wrong, one line each.
std::vector<std::string> apply_settings(const GivenValues& values, DaemonSettings& settings);

// Settings that differ between two sets of values and that only a restart would change, one line
// each.
std::vector<std::string> needing_restart(const GivenValues& running, const GivenValues& wanted);

}  // namespace fingerpost
