#include "syncer/daemon_settings.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>

#include "shm/number_text.h"
#include "shm/segment_path.h"
#include "syncer/duration.h"
#include "syncer/sqlite_db.h"

namespace fingerpost {
namespace {

using Kind = Setting::Kind;
using std::chrono::milliseconds;

std::string quoted(std::string_view value) {
  return "'" + std::string(value) + "'";
}

Status store_text(std::string_view value, std::string& out) {
  if (value.empty()) return {Code::refused, "is empty"};
  out = value;
  return {};
}

// A path, which anything with a slash is, means nothing before it is opened.
Status store_name(std::string_view value, std::string& out) {
  if (Status status = store_text(value, out); !status.ok()) return status;
  const auto path = path_to_write(value, kLayoutVersion);
  return path.ok() ? Status() : path.status();
}

Status store_directory(std::string_view value, std::string& out) {
  if (Status status = store_text(value, out); !status.ok()) return status;
  const auto path = sqlite_path_of_url(value);
  return path.ok() ? Status() : path.status();
}

Status store_number(std::string_view value, std::uint64_t low, std::uint64_t high,
                    std::uint64_t& out) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < low || number > high) {
    return {Code::refused,
            quoted(value) + " is no number from " + grouped(low) + " to " + grouped(high)};
  }
  out = number;
  return {};
}

template <class Duration>
Status store_duration(std::string_view value, milliseconds least, Duration& out) {
  const auto parsed = parse_duration(value);
  if (!parsed) {
    return {Code::refused, quoted(value) + " is no duration: a number and ms, s, m, h or d"};
  }
  if (*parsed < least) {
    return {Code::refused,
            quoted(value) + " is below the least, " + std::to_string(least.count()) + "ms"};
  }
  out = *parsed;
  return {};
}

std::optional<std::uint32_t> id_in(std::string_view text) {
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

Status store_owner(std::string_view value, uid_t& out) {
  if (const passwd* entry = getpwnam(std::string(value).c_str())) {
    out = entry->pw_uid;
  } else if (const auto id = id_in(value)) {
    out = *id;
  } else {
    return {Code::refused, "there is no user " + quoted(value)};
  }
  return {};
}

Status store_group(std::string_view value, gid_t& out) {
  if (const group* entry = getgrnam(std::string(value).c_str())) {
    out = entry->gr_gid;
  } else if (const auto id = id_in(value)) {
    out = *id;
  } else {
    return {Code::refused, "there is no group " + quoted(value)};
  }
  return {};
}

Status store_mode(std::string_view value, mode_t& out) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), mode, 8);
  if (error != std::errc{} || end != value.data() + value.size() || mode > 07777) {
    return {Code::refused, quoted(value) + " is no octal mode"};
  }
  if (const auto why_not = why_not_segment_mode(mode)) {
    return {Code::refused, quoted(value) + ": " + std::string(*why_not)};
  }
  out = mode;
  return {};
}

template <class Value>
Status store_word(std::string_view value,
                  std::initializer_list<std::pair<std::string_view, Value>> words, Value& out) {
  std::string known;
  for (const auto& [word, meaning] : words) {
    if (word == value) {
      out = meaning;
      return {};
    }
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  return {Code::refused, quoted(value) + " is none of " + known};
}

constexpr Setting kSettings[] = {
    {"name", "NAME", "Of the segment, or its path (anything with a slash)", Kind::text, false,
     [](std::string_view v, DaemonSettings& s) { return store_name(v, s.syncer.name); }},
    {"directory", "URL", "Where the directory is: sqlite:PATH or a path", Kind::text, false,
     [](std::string_view v, DaemonSettings& s) { return store_directory(v, s.syncer.directory); }},
    {"state_dir", "FOLDER",
     "Of the snapshots, which make the next start fast and possible without the directory",
     Kind::text, false,
     [](std::string_view v, DaemonSettings& s) { return store_text(v, s.syncer.state_dir); }},
    {"owner", "USER", "Who owns the segment (default: this process's user)", Kind::text, false,
     [](std::string_view v, DaemonSettings& s) { return store_owner(v, s.syncer.access.owner); }},
    {"group", "GROUP", "Whose members may map it (default: this process's group)", Kind::text,
     false,
     [](std::string_view v, DaemonSettings& s) { return store_group(v, s.syncer.access.group); }},
    {"mode", "MODE", "Permissions of the segment, octal, exactly (default 0640)", Kind::text, false,
     [](std::string_view v, DaemonSettings& s) { return store_mode(v, s.syncer.access.mode); }},
    {"capacity", "N", "Most entries ever; costs address space, not memory (default 16,777,216)",
     Kind::number, false,
     [](std::string_view v, DaemonSettings& s) {
       return store_number(v, 1, kCapacityMax, s.syncer.capacity);
     }},
    {"topology_bytes", "N", "Room for shards (default: some 2 MB)", Kind::number, false,
     [](std::string_view v, DaemonSettings& s) {
       return store_number(v, kTopologyBytesMin, kTopologyBytesMax, s.syncer.topology_bytes);
     }},
    {"lock_memory", "WORD",
     "try: keep the segment out of swap where the limits allow it; off (default)", Kind::text,
     false,
     [](std::string_view v, DaemonSettings& s) {
       return store_word(v, {{"off", false}, {"try", true}}, s.syncer.lock_memory);
     }},
    {"start_jitter", "DURATION",
     "A start waits for a random time up to this before it asks the directory anything (default 0)",
     Kind::duration, false,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(0), s.start_jitter);
     }},
    {"catch_up_wait", "DURATION",
     "How long a start waits for the directory before a snapshot counts as ready (default 5s)",
     Kind::duration, false,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(0), s.syncer.freshness.catch_up_wait);
     }},
    {"poll_interval", "DURATION", "How often the directory is asked at least (default 1s)",
     Kind::duration, true,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(1), s.syncer.poll_interval);
     }},
    {"snapshot_interval", "DURATION", "How often a snapshot is written at most (default 60s)",
     Kind::duration, true,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(1), s.syncer.snapshot_interval);
     }},
    {"reconcile_interval", "DURATION",
     "How often everything is compared with the directory (default 10m)", Kind::duration, true,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(1), s.syncer.reconcile_interval);
     }},
    {"stale_after", "DURATION", "Data older than this counts as stale (default 10s)",
     Kind::duration, true,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(0), s.syncer.freshness.stale_after);
     }},
    {"max_snapshot_age", "DURATION", "Data older than this is not ready to serve (default 24h)",
     Kind::duration, true,
     [](std::string_view v, DaemonSettings& s) {
       return store_duration(v, milliseconds(0), s.syncer.freshness.max_snapshot_age);
     }},
    {"log_level", "WORD", "Least that is logged: info (default), warning or error", Kind::text,
     true,
     [](std::string_view v, DaemonSettings& s) {
       return store_word(v,
                         {{"info", Log::Level::info},
                          {"warning", Log::Level::warning},
                          {"error", Log::Level::error}},
                         s.log_level);
     }},
    {"log_format", "WORD", "text (default), or json: an object a line", Kind::text, true,
     [](std::string_view v, DaemonSettings& s) {
       return store_word(v, {{"text", Log::Format::text}, {"json", Log::Format::json}},
                         s.log_format);
     }},
};

}  // namespace

std::span<const Setting> all_settings() {
  return kSettings;
}

const Setting* find_setting(std::string_view key) {
  const auto found = std::ranges::find(kSettings, key, &Setting::key);
  return found == std::end(kSettings) ? nullptr : found;
}

std::string flag_of(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::vector<std::string> apply_settings(const GivenValues& values, DaemonSettings& settings) {
  std::vector<std::string> faults;
  for (const auto& [key, given] : values) {
    const Status status = find_setting(key)->store(given.value, settings);
    if (!status.ok()) faults.push_back(given.where + ": " + status.message());
  }
  return faults;
}

std::vector<std::string> needing_restart(const GivenValues& running, const GivenValues& wanted) {
  std::vector<std::string> lines;
  for (const Setting& setting : all_settings()) {
    if (setting.live) continue;
    const auto value_in = [&](const GivenValues& values) {
      const auto found = values.find(setting.key);
      return found == values.end() ? std::string("its default") : quoted(found->second.value);
    };
    const std::string was = value_in(running);
    const std::string is = value_in(wanted);
    if (was == is) continue;
    lines.push_back(std::string(setting.key) + " stays " + was + ": only a restart makes it " + is);
  }
  return lines;
}

}  // namespace fingerpost
