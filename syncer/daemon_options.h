// fingerpostd's command line.
#pragma once

#include <optional>

#include "syncer/exit_status.h"
#include "syncer/syncer.h"

namespace fingerpost {

// What the arguments ask for; or, where they ask for help, the version or nonsense, what to exit
// with (the text is printed already).
struct DaemonCommand {
  SyncerOptions options;
  std::optional<ExitStatus> exit;
};
DaemonCommand parse_command_line(int argc, char** argv);

}  // namespace fingerpost
