#include "syncer/daemon_options.h"

#include <grp.h>
#include <pwd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace fingerpost {
namespace {

constexpr const char* kExample = R"(
Example:
  fingerpost init --directory /var/lib/orders/directory.db --buckets 1024
  fingerpostd --name orders --directory /var/lib/orders/directory.db --state-dir /var/lib/fingerpost
  fingerpost resolve orders acme

SIGTERM and SIGINT stop it within a second; the segment stays and goes on serving.

Exit status: 0 stopped by a signal · 2 usage · 3 refused (no directory of ours, another directory's segment)
4 unreachable (another syncer has the name, not permitted, no space) · 5 internal)";

// Milliseconds from "250ms", "5s", "10m", "24h" or a plain number of seconds.
const std::map<std::string, std::int64_t> kUnits = {
    {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}};

CLI::Option* add_duration(CLI::App& app, const std::string& name, std::int64_t& milliseconds,
                          const std::string& text) {
  return app
      .add_option_function<std::string>(
          name,
          [&milliseconds, name](const std::string& value) {
            const std::size_t digits = value.find_first_not_of("0123456789");
            const std::string unit = digits == std::string::npos ? "s" : value.substr(digits);
            const auto known = kUnits.find(unit);
            if (digits == 0 || known == kUnits.end() || value.size() > 12) {
              throw CLI::ValidationError(
                  name, "'" + value + "' is no duration: a number and ms, s, m or h");
            }
            milliseconds = std::stoll(value.substr(0, digits)) * known->second;
          },
          text)
      ->type_name("DURATION");
}

uid_t uid_of(const std::string& text) {
  if (const passwd* entry = getpwnam(text.c_str())) return entry->pw_uid;
  if (!text.empty() && text.size() < 10 &&
      text.find_first_not_of("0123456789") == std::string::npos) {
    return static_cast<uid_t>(std::stoul(text));
  }
  throw CLI::ValidationError("--owner", "there is no user '" + text + "'");
}

gid_t gid_of(const std::string& text) {
  if (const group* entry = getgrnam(text.c_str())) return entry->gr_gid;
  if (!text.empty() && text.size() < 10 &&
      text.find_first_not_of("0123456789") == std::string::npos) {
    return static_cast<gid_t>(std::stoul(text));
  }
  throw CLI::ValidationError("--group", "there is no group '" + text + "'");
}

}  // namespace

DaemonCommand parse_command_line(int argc, char** argv) {
  DaemonCommand command;
  SyncerOptions& options = command.options;
  CLI::App app{"Keeps one segment in shared memory in step with a directory.", "fingerpostd"};
  app.footer(kExample);
  app.set_version_flag("--version", FINGERPOST_VERSION);
  std::int64_t poll = options.poll_interval.count();
  std::int64_t snapshot = options.snapshot_interval.count();
  std::int64_t reconcile = options.reconcile_interval.count();
  std::int64_t stale = 10'000;
  std::int64_t snapshot_age = 24 * 3'600'000;
  std::int64_t catch_up = 5'000;
  std::string owner;
  std::string group_name;
  std::string mode = "0640";
  app.add_option("--name", options.name, "Of the segment, or its path (anything with a slash)")
      ->required();
  app.add_option("--directory", options.directory, "Where the directory is: sqlite:PATH or a path")
      ->required()
      ->envname("FINGERPOST_DIRECTORY");
  app.add_option("--state-dir", options.state_dir,
                 "Folder of the snapshots, which make the next start fast and possible "
                 "without the directory")
      ->required();
  app.add_option("--owner", owner, "User who owns the segment (default: this process's)");
  app.add_option("--group", group_name, "Group whose members may map it (default: this process's)");
  app.add_option("--mode", mode, "Permissions of the segment, octal, exactly (default 0640)");
  app.add_option("--capacity", options.capacity,
                 "Most entries ever; costs address space, not memory (default 16,777,216)")
      ->check(CLI::Range(std::uint64_t{1}, kCapacityMax));
  app.add_option("--topology-bytes", options.topology_bytes, "Room for shards (default: some 2 MB)")
      ->check(CLI::Range(kTopologyBytesMin, kTopologyBytesMax));
  add_duration(app, "--poll-interval", poll,
               "How often the directory is asked at least (default 1s)");
  add_duration(app, "--snapshot-interval", snapshot,
               "How often a snapshot is written at most (default 60s)");
  add_duration(app, "--reconcile-interval", reconcile,
               "How often everything is compared with the directory (default 10m)");
  add_duration(app, "--stale-after", stale, "Data older than this counts as stale (default 10s)");
  add_duration(app, "--max-snapshot-age", snapshot_age,
               "Data older than this is not ready to serve (default 24h)");
  add_duration(
      app, "--catch-up-wait", catch_up,
      "How long a start waits for the directory before a snapshot counts as ready (default 5s)");
  try {
    app.parse(argc, argv);
    if (!owner.empty()) options.access.owner = uid_of(owner);
    if (!group_name.empty()) options.access.group = gid_of(group_name);
    if (mode.empty() || mode.size() > 4 ||
        mode.find_first_not_of("01234567") != std::string::npos) {
      throw CLI::ValidationError("--mode", "'" + mode + "' is no octal mode");
    }
    options.access.mode = static_cast<mode_t>(std::stoul(mode, nullptr, 8));
    if (poll < 1 || snapshot < 1)
      throw CLI::ValidationError("--poll-interval, --snapshot-interval", "must be above 0");
  } catch (const CLI::ParseError& error) {
    command.exit = app.exit(error) == 0 ? ExitStatus::done : ExitStatus::usage;
    return command;
  }
  options.poll_interval = std::chrono::milliseconds(poll);
  options.snapshot_interval = std::chrono::milliseconds(snapshot);
  options.reconcile_interval = std::chrono::milliseconds(reconcile);
  options.freshness.stale_after = std::chrono::milliseconds(stale);
  options.freshness.max_snapshot_age = std::chrono::milliseconds(snapshot_age);
  options.freshness.catch_up_wait = std::chrono::milliseconds(catch_up);
  return command;
}

}  // namespace fingerpost
