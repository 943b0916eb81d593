#include "shm/route_fields.h"

namespace fingerpost {

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::none:
    case State::split:
      return "";
    case State::active:
      return "ACTIVE";
    case State::migrating:
      return "MIGRATING";
    case State::frozen:
      return "FROZEN";
    case State::deleted:
      return "DELETED";
    case State::unrecognised:
      break;
  }
  return "UNRECOGNISED";
}

State parse_state(std::string_view text) noexcept {
  for (const State state : {State::active, State::migrating, State::frozen, State::deleted}) {
    if (text == to_string(state)) return state;
  }
  return State::unrecognised;
}

std::string_view to_string(RouteSource source) noexcept {
  switch (source) {
    case RouteSource::none:
      return "";
    case RouteSource::override_entry:
      return "override";
    case RouteSource::bucket:
      return "bucket";
    case RouteSource::part:
      return "part";
    case RouteSource::hash:
      return "hash";
  }
  return "";
}

}  // namespace fingerpost
