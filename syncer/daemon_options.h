// fingerpostd's command line, and what it says together with the configuration file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "syncer/daemon_settings.h"
#include "syncer/exit_status.h"

namespace fingerpost {

struct DaemonCommand {
  std::string config_path;  // empty: there is none
  GivenValues flags;
  GivenValues values;  // of flags and file together
  DaemonSettings settings;
  // Instead of serving: help, version or a checked configuration were asked for, or something is
  // wrong. The text is printed already.
  std::optional<ExitStatus> exit;
};
DaemonCommand parse_command_line(int argc, char** argv);

// Reads the configuration file once more, below the same flags. What is wrong with it, one line
// each; then nothing in `values` and `settings` is to be used.
std::vector<std::string> read_settings(const std::string& config_path, const GivenValues& flags,
                                       GivenValues& values, DaemonSettings& settings);

}  // namespace fingerpost
