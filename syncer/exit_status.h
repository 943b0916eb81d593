// What fingerpost and fingerpostd exit with. Of several answers the worst decides, and worse is
// larger.
#pragma once

#include "shm/status.h"

namespace fingerpost {

enum class ExitStatus : int {
  done = 0,
  no = 1,           // a definite no: unknown, not ready, differs
  usage = 2,        // the command line makes no sense
  refused = 3,      // the input, or what it asks for, is not acceptable
  unreachable = 4,  // no such directory or segment, not permitted, locked, disk full
  internal = 5,
};

constexpr ExitStatus exit_status_of(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return ExitStatus::done;
    case Code::not_ready:
      return ExitStatus::no;
    case Code::refused:
    case Code::conflict:
      return ExitStatus::refused;
    case Code::absent:
    case Code::not_permitted:
    case Code::wrong_owner:
    case Code::other_layout:
    case Code::other_directory:
    case Code::other_history:
    case Code::busy:
    case Code::no_space:
    case Code::unavailable:
    case Code::timeout:
    case Code::io_error:
      return ExitStatus::unreachable;
    case Code::corrupt:
    case Code::internal:
      break;
  }
  return ExitStatus::internal;
}

}  // namespace fingerpost
