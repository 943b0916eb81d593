#include "shm/writer_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "shm/account.h"
#include "shm/number_text.h"
#include "shm/segment_path.h"

namespace fingerpost {
namespace {

constexpr int kAttemptsMax = 16;  // against a name that changes between two calls
constexpr mode_t kLockMode = 0600;

// Offset 0 and length 0: the whole file, whatever its size becomes.
struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// 0, or errno.
int try_write_lock(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

bool held_by_another(int error) {
  return error == EAGAIN || error == EACCES;
}

// Opens the lock file, or makes it. O_CREAT goes with O_EXCL only: on a file that is there already
// the kernel would refuse it in a sticky folder. Neither open blocks on a fifo.
UniqueFd open_lock_file(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    UniqueFd there(::open(path.c_str(), kFlags));
    if (there || errno != ENOENT) return there;
    UniqueFd made(::open(path.c_str(), kFlags | O_CREAT | O_EXCL, kLockMode));
    if (made || errno != EEXIST) return made;
  }
  return {};
}

Status why_not_opened(int error, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return Status::from_errno(error, "cannot make " + path);
  if (!S_ISREG(info.st_mode)) return {Code::refused, path + " is not a regular file"};
  return Status::from_errno(error, "cannot open " + path + " (owned by " + user_text(info.st_uid) +
                                       ", mode " + mode_text(info.st_mode) + ")");
}

struct LockFile {
  UniqueFd fd;
  FileIdentity identity;
};

Status check_lock_file(int fd, const std::string& path, uid_t owner) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::from_errno(errno, "cannot examine " + path);
  if (!S_ISREG(info.st_mode)) return {Code::refused, path + " is not a regular file"};
  if (info.st_uid != 0 && info.st_uid != ::geteuid() && info.st_uid != owner) {
    return {Code::wrong_owner, path + " is owned by " + user_text(info.st_uid) + ", not by root, " +
                                   user_text(::geteuid()) + " or the configured owner " +
                                   user_text(owner)};
  }
  // Not ours to change where it is root's or the owner's; theirs is no looser for it than they made
  // it.
  if ((info.st_mode & 07777) != kLockMode && ::fchmod(fd, kLockMode) != 0 && errno != EPERM) {
    return Status::from_errno(errno, "cannot set the mode of " + path);
  }
  return {};
}

Result<LockFile> lock_file(const std::string& path, uid_t owner) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    LockFile file{open_lock_file(path), {}};
    if (!file.fd) return why_not_opened(errno, path);
    if (Status status = check_lock_file(file.fd.get(), path, owner); !status.ok()) return status;
    if (const int error = try_write_lock(file.fd.get()); held_by_another(error)) {
      return Status(Code::busy, "another writer holds the lock " + path);
    } else if (error != 0) {
      return Status::from_errno(error, "cannot lock " + path);
    }
    Result<FileIdentity> identity = identity_of(file.fd.get(), path);
    if (!identity) return identity.status();
    // Between open and lock the name may have become another file, which another writer may lock.
    file.identity = *identity;
    if (name_state(path, file.identity) == NameState::same) return file;
  }
  return Status(Code::conflict, path + " is replaced again and again");
}

}  // namespace

WriterLock::WriterLock(std::string segment_path, uid_t owner, UniqueFd fd, FileIdentity identity)
    : segment_path_(std::move(segment_path)),
      owner_(owner),
      fd_(std::move(fd)),
      identity_(identity) {}

Result<WriterLock> WriterLock::acquire(const std::string& segment_path, uid_t owner) {
  Result<LockFile> file = lock_file(lock_path(segment_path), owner);
  if (!file) return file.status();
  return WriterLock(segment_path, owner, std::move(file->fd), file->identity);
}

Status WriterLock::hold() {
  const std::string path = lock_path(segment_path_);
  if (name_state(path, identity_) == NameState::same) return {};
  Result<LockFile> file = lock_file(path, owner_);
  if (!file) return file.status();
  fd_ = std::move(file->fd);
  identity_ = file->identity;
  return {};
}

Result<SegmentLock> lock_segment(int fd, const std::string& path) {
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    const int error = try_write_lock(fd);
    if (error == 0) return SegmentLock::held;
    if (!held_by_another(error)) return Status::from_errno(error, "cannot lock " + path);
    // A read lock conflicts with writers' locks only, so what it would meet is a writer.
    struct flock probe = whole_file(F_RDLCK);
    if (::fcntl(fd, F_OFD_GETLK, &probe) != 0) {
      return Status::from_errno(errno, "cannot ask for the locks of " + path);
    }
    if (probe.l_type != F_UNLCK) return Status(Code::busy, "another writer holds " + path);
    // A reader's, unless whoever held it let go between the two calls: asked again, that comes out.
  }
  return SegmentLock::reader_in_the_way;
}

}  // namespace fingerpost
