#include "shm/segment_open.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "shm/account.h"
#include "shm/number_text.h"

namespace fingerpost {
namespace {

// Not for a worker, who may neither change nor remove it.
constexpr const char* kWhatToDo =
    "; set it right if you trust what it holds, or remove it: a new one is built then";

constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

// A folder held open, so that the folder asked about is the one the file was opened in.
struct Place {
  UniqueFd folder;
  std::string file_name;
};

Result<Place> place_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash + 1 == path.size()) {
    return Status(Code::refused, "'" + path + "' is not the path of a file");
  }
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  Place place{UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
              path.substr(slash + 1)};
  if (!place.folder) {
    return Status::from_errno(errno, "cannot open " + path + ": its folder " + folder);
  }
  return place;
}

// " (owned by alice (uid 1000), mode 0600)", or nothing where not even that can be seen.
std::string described(const Place& place) {
  struct stat info {};
  const int seen =
      ::fstatat(place.folder.get(), place.file_name.c_str(), &info, AT_SYMLINK_NOFOLLOW);
  if (seen != 0) return {};
  return " (owned by " + user_text(info.st_uid) + ", mode " + mode_text(info.st_mode) + ")";
}

Status why_not_opened(int error, const std::string& path, const Place& place) {
  switch (error) {
    case ELOOP:
      return {Code::refused, path + " is a symbolic link; give the path of the segment"};
    case EISDIR:
    case ENXIO:
      return {Code::refused, path + " is not a regular file"};
    case ENOENT:
      return {Code::absent, path + " does not exist"};
    default:
      return Status::from_errno(error, "cannot open " + path + described(place));
  }
}

struct Opened {
  OpenedSegment segment;
  Place place;
  mode_t mode = 0;
};

Result<Opened> open_checked(const std::string& path, int access) {
  Result<Place> place = place_of(path);
  if (!place) return place.status();
  // Without O_NONBLOCK a fifo that somebody planted would hold the open until it has a partner.
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd(::openat(place->folder.get(), place->file_name.c_str(), access | kFlags));
  if (!fd) return why_not_opened(errno, path, *place);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Status::from_errno(errno, "cannot examine " + path);
  if (!S_ISREG(info.st_mode)) return Status(Code::refused, path + " is not a regular file");
  if (Status status = check_on_tmpfs(fd.get(), path); !status.ok()) return status;
  Opened opened;
  opened.segment.identity = {info.st_dev, info.st_ino};
  opened.segment.owner = info.st_uid;
  opened.segment.file_bytes = static_cast<std::uint64_t>(info.st_size);
  opened.segment.fd = std::move(fd);
  opened.place = *std::move(place);
  opened.mode = info.st_mode;
  return opened;
}

Status check_only_owner_writes(const Opened& opened, const std::string& path) {
  if ((opened.mode & kWritableByOthers) == 0) return {};
  return {Code::wrong_owner, path + " may be written by others than its owner " +
                                 user_text(opened.segment.owner) + " (mode " +
                                 mode_text(opened.mode) + ")"};
}

// An access control list shows in the group bits, so these two bits are the whole truth.
bool is_private_folder_of(const UniqueFd& folder, uid_t owner) {
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) return false;
  return info.st_uid == owner && (info.st_mode & kWritableByOthers) == 0;
}

Status check_trusted(const Opened& opened, const TrustedOwners& trusted, const std::string& path) {
  const uid_t owner = opened.segment.owner;
  if (owner == 0 || owner == ::geteuid() || owner == trusted.owner) return {};
  if (is_private_folder_of(opened.place.folder, owner)) return {};
  std::string message = path + " is owned by " + user_text(owner) + ", not by root, " +
                        user_text(::geteuid()) + " or the sole writer of its folder";
  if (trusted.owner) message += ", nor by the configured owner " + user_text(*trusted.owner);
  return {Code::wrong_owner, message + "; FINGERPOST_OWNER names another owner to trust"};
}

std::string file_system_text(unsigned long magic) {
  switch (magic) {
    case NFS_SUPER_MAGIC:
      return "NFS";
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
      return "SMB";
    case CEPH_SUPER_MAGIC:
      return "Ceph";
    case AFS_SUPER_MAGIC:
      return "AFS";
    case FUSE_SUPER_MAGIC:
      return "FUSE";
    case V9FS_MAGIC:
      return "9P";
    case OVERLAYFS_SUPER_MAGIC:
      return "overlayfs";
    case RAMFS_MAGIC:
      return "ramfs";
    case EXT4_SUPER_MAGIC:
      return "ext4";
    case XFS_SUPER_MAGIC:
      return "XFS";
    case BTRFS_SUPER_MAGIC:
      return "Btrfs";
    default:
      return "a file system of type " + std::to_string(magic);
  }
}

}  // namespace

Result<TrustedOwners> trusted_owners(std::string_view option) {
  const char* environment = option.empty() ? ::secure_getenv("FINGERPOST_OWNER") : nullptr;
  const std::string_view text = environment != nullptr ? environment : option;
  TrustedOwners trusted;
  if (text.empty()) return trusted;
  if (text == "any") {
    trusted.any = true;
    return trusted;
  }
  Result<uid_t> owner = user_id(text);
  if (!owner) {
    return Status(owner.status().code(),
                  "the trusted owner of segments: " + owner.status().message());
  }
  trusted.owner = *owner;
  return trusted;
}

Result<OpenedSegment> open_to_read(const std::string& path, const TrustedOwners& trusted) {
  Result<Opened> opened = open_checked(path, O_RDONLY);
  if (!opened) return opened.status();
  if (!trusted.any) {
    if (Status status = check_trusted(*opened, trusted, path); !status.ok()) return status;
    if (Status status = check_only_owner_writes(*opened, path); !status.ok()) return status;
  }
  return std::move(opened->segment);
}

Result<OpenedSegment> open_to_adopt(const std::string& path, uid_t owner) {
  Result<Opened> opened = open_checked(path, O_RDWR);
  if (!opened) return opened.status();
  const uid_t found = opened->segment.owner;
  if (found != 0 && found != ::geteuid() && found != owner) {
    return Status(Code::wrong_owner, path + " is owned by " + user_text(found) + ", not by root, " +
                                         user_text(::geteuid()) + " or the configured owner " +
                                         user_text(owner) + kWhatToDo);
  }
  if (Status status = check_only_owner_writes(*opened, path); !status.ok())
    return Status(status.code(), status.message() + kWhatToDo);
  return std::move(opened->segment);
}

Status check_on_tmpfs(int fd, const std::string& path) {
  struct statfs info {};
  if (::fstatfs(fd, &info) != 0) {
    return Status::from_errno(errno, "cannot tell the file system of " + path);
  }
  if (info.f_type == TMPFS_MAGIC) return {};
  return {Code::refused, path + " lies on " +
                             file_system_text(static_cast<unsigned long>(info.f_type)) +
                             "; a segment must lie on a tmpfs, such as /dev/shm"};
}

}  // namespace fingerpost
