#include "shm/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace fingerpost {

Result<FileIdentity> identity_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::from_errno(errno, "cannot examine " + path);
  return FileIdentity{info.st_dev, info.st_ino};
}

NameState name_state(const std::string& path, const FileIdentity& file) noexcept {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? NameState::gone : NameState::unknown;
  }
  return FileIdentity{info.st_dev, info.st_ino} == file ? NameState::same : NameState::replaced;
}

}  // namespace fingerpost
