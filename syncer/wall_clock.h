// The wall clock, for what must outlast a boot (snapshots) or be told apart from another host's
// past (incarnations). Ages and deadlines use shm/boot_clock.h.
#pragma once

#include <chrono>
#include <cstdint>

namespace fingerpost {

inline std::int64_t unix_time_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace fingerpost
