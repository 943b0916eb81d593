#include "syncer/daemon_config.h"

#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "shm/segment_plan.h"
#include "tests/temp_folder.h"

using namespace fingerpost;

namespace {

DaemonConfig read_text(const std::string& text) {
  const TempFolder folder;
  std::ofstream(folder.file("d.toml"), std::ios::binary) << text;
  DaemonConfig config = read_daemon_config(folder.file("d.toml"));
  for (std::string& fault : config.faults) fault.erase(0, folder.path().size() + 1);
  return config;
}

// The example with its commented keys in force.
DaemonConfig read_example() {
  std::ostringstream text;
  text << std::ifstream(FINGERPOST_EXAMPLE).rdbuf();
  static const std::regex commented("(^|\n)#([a-z_]+ = )");
  return read_text(std::regex_replace(text.str(), commented, "$1$2"));
}

auto members(const DaemonSettings& s) {
  return std::tuple(s.log_format, s.log_level, s.start_jitter, s.syncer.lock_memory,
                    s.syncer.capacity, s.syncer.access.mode, s.syncer.poll_interval,
                    s.syncer.snapshot_interval, s.syncer.reconcile_interval,
                    s.syncer.freshness.stale_after, s.syncer.freshness.max_snapshot_age,
                    s.syncer.freshness.catch_up_wait);
}

}  // namespace

TEST_CASE("the example file documents every key, and nothing else") {
  const DaemonConfig example = read_example();
  CHECK(example.faults.empty());
  std::set<std::string_view> documented;
  for (const auto& [key, given] : example.values) documented.insert(key);
  std::set<std::string_view> known;
  for (const Setting& setting : all_settings()) known.insert(setting.key);
  CHECK(documented == known);
}

TEST_CASE("what the example file calls defaults are the defaults") {
  GivenValues values = read_example().values;
  for (const char* key : {"owner", "group"}) values.erase(key);  // accounts of a host
  DaemonSettings settings;
  CHECK(apply_settings(values, settings).empty());
  CHECK(members(settings) == members(DaemonSettings()));
  CHECK(settings.syncer.topology_bytes == SegmentPlan::make(kCapacityDefault).topology_bytes);
}

TEST_CASE("what the example file says of SIGHUP is so") {
  std::ostringstream text;
  text << std::ifstream(FINGERPOST_EXAMPLE).rdbuf();
  const std::size_t live_from = text.str().find("read again at SIGHUP");
  REQUIRE(live_from != std::string::npos);
  for (const Setting& setting : all_settings()) {
    const std::size_t at = text.str().rfind(std::string(setting.key) + " = ");
    CHECK_MESSAGE((at > live_from) == setting.live, setting.key);
  }
}

TEST_CASE("every fault of a file is told with its line, in the order of the lines") {
  CHECK(read_text("name = \"x\"\n\npoll_intervl = 3\nmode = 640\n[source]\nkind = \"x\"\n"
                  "capacity = \"5\"\n")
            .faults == std::vector<std::string>{"d.toml:3: poll_intervl: there is no such key",
                                                "d.toml:4: mode: must be a string",
                                                "d.toml:5: source: there is no such key"});
  const auto duplicate = read_text("name = \"x\"\nname = \"y\"\n").faults;
  REQUIRE(duplicate.size() == 1);
  CHECK(duplicate[0].starts_with("d.toml:2: "));
  const auto broken = read_text("name = \"x\"\nmode =\n").faults;
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].starts_with("d.toml:2: "));
}

TEST_CASE("values that make no sense are told with where they stand and what would") {
  const auto fault_of = [](const std::string& line) {
    const DaemonConfig config = read_text(line + "\n");
    CHECK(config.faults.empty());
    DaemonSettings settings;
    const auto faults = apply_settings(config.values, settings);
    REQUIRE_MESSAGE(faults.size() == 1, line);
    return faults[0].substr(faults[0].find("d.toml"));
  };
  CHECK(fault_of("capacity = 0") == "d.toml:1: capacity: '0' is no number from 1 to 2,147,483,648");
  CHECK(fault_of("capacity = -5") ==
        "d.toml:1: capacity: '-5' is no number from 1 to 2,147,483,648");
  CHECK(fault_of("poll_interval = \"0s\"") ==
        "d.toml:1: poll_interval: '0s' is below the least, 1ms");
  CHECK(fault_of("mode = \"0689\"") == "d.toml:1: mode: '0689' is no octal mode");
  CHECK(fault_of("log_format = \"xml\"") == "d.toml:1: log_format: 'xml' is none of text, json");
  CHECK(fault_of("lock_memory = \"yes\"") == "d.toml:1: lock_memory: 'yes' is none of off, try");
  CHECK(fault_of("owner = \"no such user\"") == "d.toml:1: owner: there is no user 'no such user'");
  CHECK(fault_of("name = \"\"") == "d.toml:1: name: is empty");
  CHECK(fault_of("stale_after = \"5 parsecs\"")
            .starts_with("d.toml:1: stale_after: '5 parsecs' is no duration"));
}

TEST_CASE("durations may be numbers of seconds, and octal modes keep their meaning") {
  const DaemonConfig config = read_text("poll_interval = 3\nmode = \"644\"\n");
  DaemonSettings settings;
  CHECK(apply_settings(config.values, settings).empty());
  CHECK(settings.syncer.poll_interval == std::chrono::seconds(3));
  CHECK(settings.syncer.access.mode == 0644);
}

TEST_CASE("only a setting that differs and is not live needs a restart") {
  const GivenValues running = {{"name", {"a", ""}}, {"poll_interval", {"1s", ""}}};
  const GivenValues wanted = {
      {"name", {"b", ""}}, {"poll_interval", {"2s", ""}}, {"capacity", {"9", ""}}};
  CHECK(needing_restart(running, wanted) ==
        std::vector<std::string>{"name stays 'a': only a restart makes it 'b'",
                                 "capacity stays its default: only a restart makes it '9'"});
  CHECK(needing_restart(running, running).empty());
}

TEST_CASE("a file that cannot be read is named with the reason") {
  CHECK(read_daemon_config("/nonexistent/d.toml").faults ==
        std::vector<std::string>{"cannot read /nonexistent/d.toml: No such file or directory"});
}
