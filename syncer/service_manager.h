// Telling systemd, or whatever else made NOTIFY_SOCKET, how the daemon fares: sd_notify's
// datagrams.
//
// Thread-safety: any thread. Never blocks: a datagram that is not taken at once is not sent.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "shm/status.h"
#include "shm/unique_fd.h"

namespace fingerpost {

class ServiceManager {
 public:
  // Nobody to tell.
  ServiceManager() = default;

  // From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; nobody to tell where the first is not set.
  // refused: an address that is none
  static Result<ServiceManager> from_environment();

  // Lines such as "READY=1". Whether they were taken; also true where there is nobody to tell.
  bool tell(std::string_view lines) const noexcept;

  // Within which time WATCHDOG=1 is expected again and again; nullopt: it is not.
  std::optional<std::chrono::microseconds> watchdog_interval() const { return watchdog_interval_; }

 private:
  UniqueFd socket_;
  std::string address_;  // as the kernel takes it: a path, or a zero byte and an abstract name
  std::optional<std::chrono::microseconds> watchdog_interval_;
};

// `text` as the value of a line: without line ends.
std::string one_line(std::string_view text);

}  // namespace fingerpost
