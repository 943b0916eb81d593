#include "bench/subject.h"

namespace fingerpost::bench {

std::string_view to_string(Way way) {
  switch (way) {
    case Way::independent:
      return "independent";
    case Way::dependent:
      return "dependent";
    case Way::batch:
      return "batch";
  }
  return "independent";
}

std::vector<Peer>& peers() {
  static std::vector<Peer> all;
  return all;
}

}  // namespace fingerpost::bench
