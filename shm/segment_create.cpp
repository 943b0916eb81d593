#include "shm/segment_create.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "shm/account.h"
#include "shm/number_text.h"
#include "shm/segment_open.h"
#include "shm/segment_path.h"

namespace fingerpost {
namespace {

constexpr mode_t kModeBits = 07777;
constexpr mode_t kModeLeast = 0600;
constexpr mode_t kModeMost = 0644;

Status check_mode(mode_t mode, const std::string& path) {
  const auto why_not = why_not_segment_mode(mode);
  if (!why_not) return {};
  return {Code::refused, "mode " + mode_text(mode) + " for " + path + ": " + std::string(*why_not)};
}

}  // namespace

SegmentAccess SegmentAccess::of_this_process() noexcept {
  return {::geteuid(), ::getegid()};
}

std::string access_text(const SegmentAccess& access) {
  return user_text(access.owner) + ", gid " + std::to_string(access.group) + ", mode " +
         mode_text(access.mode);
}

std::optional<std::string_view> why_not_segment_mode(mode_t mode) noexcept {
  if ((mode & kModeLeast) == kModeLeast && (mode & ~kModeMost) == 0) return std::nullopt;
  return "a segment is read and written by its owner and at most read by others "
         "(0600, 0640, 0604 or 0644)";
}

Result<SegmentAccess> access_of(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::from_errno(errno, "cannot examine " + path);
  return SegmentAccess{info.st_uid, info.st_gid, info.st_mode & kModeBits};
}

Status apply_access(int fd, const SegmentAccess& access, const std::string& path) {
  if (Status status = check_mode(access.mode, path); !status.ok()) return status;
  const auto before = access_of(fd, path);
  if (!before.ok()) return before.status();
  const bool other_account = before->owner != access.owner || before->group != access.group;
  if (other_account && ::fchown(fd, access.owner, access.group) != 0) {
    const int error = errno;  // looking up the account's name changes it
    return Status::from_errno(error, "cannot give " + path + " to " + access_text(access));
  }
  if (::fchmod(fd, access.mode) != 0) {
    return Status::from_errno(errno, "cannot set mode " + mode_text(access.mode) + " of " + path);
  }
  // A mount may map accounts, and a group that is not ours costs bits silently.
  const auto found = access_of(fd, path);
  if (!found.ok()) return found.status();
  if (*found == access) return {};
  return {Code::not_permitted,
          path + " should have " + access_text(access) + " but has " + access_text(*found)};
}

Status remove_half_made(const std::string& segment_path) {
  const std::string path = half_made_path(segment_path);
  if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
  const int error = errno;
  struct stat info {};
  const std::string owner =
      ::lstat(path.c_str(), &info) == 0 ? ", owned by " + user_text(info.st_uid) : std::string();
  return Status::from_errno(error, "cannot remove the half-made segment " + path + owner);
}

HalfMadeSegment::HalfMadeSegment(std::string segment_path, UniqueFd fd, FileIdentity identity)
    : segment_path_(std::move(segment_path)), fd_(std::move(fd)), identity_(identity) {}

Result<HalfMadeSegment> HalfMadeSegment::create(const std::string& segment_path,
                                                const SegmentAccess& access) {
  if (Status status = check_mode(access.mode, segment_path); !status.ok()) return status;
  if (Status status = remove_half_made(segment_path); !status.ok()) return status;
  const std::string path = half_made_path(segment_path);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(::open(path.c_str(), kFlags, kModeLeast));
  if (!fd) return Status::from_errno(errno, "cannot make " + path);
  Result<FileIdentity> identity = identity_of(fd.get(), path);
  if (!identity) return identity.status();
  HalfMadeSegment made(segment_path, std::move(fd), *identity);
  if (Status status = check_on_tmpfs(made.fd(), segment_path); !status.ok()) return status;
  if (Status status = apply_access(made.fd(), access, path); !status.ok()) return status;
  return made;
}

HalfMadeSegment::~HalfMadeSegment() {
  if (!fd_ || published_) return;
  const std::string path = half_made_path(segment_path_);
  if (name_state(path, identity_) == NameState::same) ::unlink(path.c_str());
}

Status HalfMadeSegment::publish(unsigned rename_flags) {
  const std::string path = half_made_path(segment_path_);
  if (name_state(path, identity_) != NameState::same) {
    return {Code::conflict, path + " is no longer the segment that was made under this name"};
  }
  if (::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, segment_path_.c_str(), rename_flags) != 0) {
    if (errno == EEXIST) return {Code::conflict, segment_path_ + " exists already"};
    return Status::from_errno(errno, "cannot rename " + path + " to " + segment_path_);
  }
  published_ = true;
  if (name_state(segment_path_, identity_) != NameState::same) {
    return {Code::conflict, segment_path_ + " is not the segment that was just given this name"};
  }
  return {};
}

Status HalfMadeSegment::publish_first() {
  return publish(RENAME_NOREPLACE);
}
Status HalfMadeSegment::publish_successor() {
  return publish(0);
}

}  // namespace fingerpost
