#include "shm/boot_clock.h"

#include <time.h>

#include <fstream>
#include <string>

#include "shm/directory_id.h"

namespace fingerpost {

std::int64_t boot_time_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result<BootId> current_boot_id() {
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  std::ifstream file(kPath);
  std::string text;
  if (!std::getline(file, text)) return Status(Code::io_error, std::string("cannot read ") + kPath);
  const auto id = parse_directory_id(text);  // the kernel writes a UUID
  if (!id) return Status(Code::io_error, std::string(kPath) + " holds no boot id: '" + text + "'");
  return *id;
}

}  // namespace fingerpost
