// fingerpostd's configuration file, in TOML: keys of daemon_settings.h at the top level, no more.
#pragma once

#include <string>
#include <vector>

#include "syncer/daemon_settings.h"

namespace fingerpost {

struct DaemonConfig {
  GivenValues values;
  std::vector<std::string> faults;  // each names file and line; then `values` are not to be used
};
DaemonConfig read_daemon_config(const std::string& path);

}  // namespace fingerpost
