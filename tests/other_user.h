// Another account for a forked child, to try what strangers may do. Needs root.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace fingerpost {

inline constexpr uid_t kNobody = 65'534;
inline constexpr uid_t kStranger = 64'123;  // no account of the host
inline constexpr gid_t kStrangerGroup = 64'124;

inline bool can_switch_users() {
  if (::geteuid() == 0) return true;
  MESSAGE("not tried: only root can become another user");
  return false;
}

// For good: only in a child.
inline void become(uid_t user, gid_t group = kStrangerGroup) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 ||
      ::setresuid(user, user, user) != 0) {
    throw std::runtime_error("cannot become uid " + std::to_string(user));
  }
}

inline void make_file(const std::string& path, uid_t owner, gid_t group, mode_t mode) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool made =
      fd >= 0 && ::fchown(fd, owner, group) == 0 && ::fchmod(fd, mode) == 0 && ::close(fd) == 0;
  if (!made) throw std::runtime_error("cannot make " + path);
}

}  // namespace fingerpost
