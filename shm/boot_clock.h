// Time that no clock step changes and that goes on in suspend: CLOCK_BOOTTIME, and which boot it
// counts from. Thread-safety: any thread.
#pragma once

#include <array>
#include <cstdint>

#include "shm/status.h"

namespace fingerpost {

// Nanoseconds since boot.
std::int64_t boot_time_ns() noexcept;

using BootId = std::array<std::uint8_t, 16>;

// The kernel's id of this boot; the same in every container of a host.
Result<BootId> current_boot_id();

}  // namespace fingerpost
