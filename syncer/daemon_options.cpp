#include "syncer/daemon_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "shm/directory_id.h"
#include "syncer/daemon_config.h"

namespace fingerpost {
namespace {

constexpr const char* kExample = R"(
Example:
  fingerpost init --directory /var/lib/orders/directory.db --buckets 1024
  fingerpostd --name orders --directory /var/lib/orders/directory.db --state-dir /var/lib/fingerpost
  fingerpost resolve orders acme

A DURATION is a number and ms, s, m, h or d; a number alone means seconds. Whatever has a flag may stand
in the file of --config instead, with underscores: poll_interval = "5s". Flags win.

SIGTERM and SIGINT stop it within a second; the segment stays and goes on serving. SIGHUP reads the
file again and takes over intervals, ages and logging; the rest needs a restart, and is named.

Exit status: 0 stopped by a signal · 2 usage · 3 refused (no directory of ours, another directory's segment)
4 unreachable (another syncer has the name, not permitted, no space) · 5 internal)";

void add_settings(CLI::App& app, GivenValues& flags) {
  for (const Setting& setting : all_settings()) {
    const std::string flag = flag_of(setting.key);
    app.add_option_function<std::string>(
           flag,
           [&flags, &setting, flag](const std::string& value) {
             flags[std::string(setting.key)] = {value, flag};
           },
           std::string(setting.help))
        ->type_name(std::string(setting.value_name));
  }
}

void print(const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) std::cerr << "fingerpostd: " << fault << '\n';
}

}  // namespace

std::vector<std::string> read_settings(const std::string& config_path, const GivenValues& flags,
                                       GivenValues& values, DaemonSettings& settings) {
  if (!config_path.empty()) {
    DaemonConfig config = read_daemon_config(config_path);
    if (!config.faults.empty()) return config.faults;
    values = std::move(config.values);
  }
  for (const auto& [key, given] : flags) values[key] = given;
  const char* directory = std::getenv("FINGERPOST_DIRECTORY");
  if (directory != nullptr && *directory != '\0') {
    values.try_emplace("directory", GivenValue{directory, "FINGERPOST_DIRECTORY"});
  }
  std::vector<std::string> faults = apply_settings(values, settings);
  for (const char* key : {"name", "directory", "state_dir"}) {
    if (values.contains(key)) continue;
    faults.push_back("there is no " + std::string(key) + ": give " + flag_of(key) +
                     (config_path.empty() ? "" : ", or put it into " + config_path));
  }
  return faults;
}

DaemonCommand parse_command_line(int argc, char** argv) {
  DaemonCommand command;
  bool check_config = false;
  bool rebuild = false;
  std::string accepted;
  CLI::App app{"Keeps one segment in shared memory in step with a directory.", "fingerpostd"};
  app.footer(kExample);
  app.set_version_flag("--version", FINGERPOST_VERSION);
  app.add_option("--config", command.config_path, "A TOML file with any of the settings below")
      ->type_name("FILE");
  app.add_flag("--check-config", check_config,
               "Only say whether file and flags make sense; exit status 0 or 2");
  app.add_flag(
      "--rebuild", rebuild,
      "Build the segment anew from the directory, whatever segment or snapshot there is. Asks no "
      "approval: what the guard against accidents withholds is served");
  app.add_option("--accept-directory", accepted,
                 "Take over a name whose segment is another directory's. The id is the new "
                 "directory's")
      ->type_name("ID");
  add_settings(app, command.flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    command.exit = app.exit(error) == 0 ? ExitStatus::done : ExitStatus::usage;
    return command;
  }
  std::vector<std::string> faults =
      read_settings(command.config_path, command.flags, command.values, command.settings);
  command.settings.syncer.rebuild = rebuild;
  if (!accepted.empty()) {
    command.settings.syncer.accepted_directory = parse_directory_id(accepted);
    if (!command.settings.syncer.accepted_directory) {
      faults.push_back("--accept-directory: '" + accepted + "' is no directory's id");
    }
  }
  print(faults);
  if (!faults.empty()) {
    command.exit = ExitStatus::usage;
  } else if (check_config) {
    std::cout << (command.config_path.empty() ? "the command line" : command.config_path)
              << ": nothing wrong\n";
    command.exit = ExitStatus::done;
  }
  return command;
}

}  // namespace fingerpost
