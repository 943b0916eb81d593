#include "syncer/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace fingerpost {
namespace {

std::optional<std::uint64_t> number_of(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::uint64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace

Result<ServiceManager> ServiceManager::from_environment() {
  ServiceManager manager;
  const char* address = std::getenv("NOTIFY_SOCKET");
  if (address == nullptr || *address == '\0') return manager;
  manager.address_ = address;
  if ((*address != '/' && *address != '@') ||
      manager.address_.size() >= sizeof(sockaddr_un::sun_path)) {
    return Status(Code::refused, "NOTIFY_SOCKET is '" + manager.address_ +
                                     "', which is no address of a local socket");
  }
  if (*address == '@') manager.address_[0] = '\0';
  manager.socket_ = UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!manager.socket_) return Status::from_errno(errno, "cannot make a socket for NOTIFY_SOCKET");
  const auto interval = number_of("WATCHDOG_USEC");
  const auto meant = number_of("WATCHDOG_PID");
  if (interval.value_or(0) != 0 && (!meant || *meant == static_cast<std::uint64_t>(::getpid()))) {
    manager.watchdog_interval_ = std::chrono::microseconds(*interval);
  }
  return manager;
}

bool ServiceManager::tell(std::string_view lines) const noexcept {
  if (!socket_) return true;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  return ::sendto(socket_.get(), lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), length) >= 0;
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

}  // namespace fingerpost
