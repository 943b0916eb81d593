#include "syncer/host_approval.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <vector>

#include "shm/segment_path.h"
#include "shm/text_file.h"
#include "shm/unique_fd.h"

namespace fingerpost {
namespace {

constexpr std::size_t kBytesMax = 128;

// "directory incarnation version" and a line end.
std::string text_of(const HostApproval& approval) {
  return to_string(approval.directory_id) + ' ' + std::to_string(approval.incarnation) + ' ' +
         std::to_string(approval.version) + '\n';
}

std::optional<HostApproval> parse(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  const std::vector<std::string_view> fields = fields_of(text, ' ');
  if (fields.size() != 3) return std::nullopt;
  const auto id = parse_directory_id(fields[0]);
  const auto incarnation = number_in(fields[1]);
  const auto version = number_in(fields[2]);
  if (!id || !incarnation || !version) return std::nullopt;
  return HostApproval{*id, *incarnation, *version};
}

}  // namespace

Status write_host_approval(const std::string& segment_path, const HostApproval& approval) {
  const std::string path = approval_path(segment_path);
  std::string half_made = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(half_made.data(), O_CLOEXEC));
  if (!fd) return Status::from_errno(errno, "cannot make " + half_made);
  const std::string text = text_of(approval);
  // Whoever runs this, the syncer may read it, and only they may write it.
  const bool done =
      ::fchmod(fd.get(), 0644) == 0 &&
      ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::rename(half_made.c_str(), path.c_str()) == 0;
  if (done) return {};
  const int error = errno;
  ::unlink(half_made.c_str());
  return Status::from_errno(error, "cannot write " + path);
}

Result<HostApproval> read_host_approval(const std::string& segment_path) {
  const std::string path = approval_path(segment_path);
  // Neither a link nor a pipe that a stranger laid there is to be followed or waited for.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return Status::from_errno(errno, "cannot open " + path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return Status::from_errno(errno, "cannot examine " + path);
  const bool is_trusted = S_ISREG(info.st_mode) && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
                          (info.st_uid == ::geteuid() || info.st_uid == 0);
  if (!is_trusted) {
    return Status(Code::wrong_owner, path + " is no file that only uid " +
                                         std::to_string(::geteuid()) +
                                         " or root can write: it allows nothing");
  }
  char bytes[kBytesMax];
  const ssize_t count = ::read(fd.get(), bytes, sizeof bytes);
  if (count < 0) return Status::from_errno(errno, "cannot read " + path);
  const auto approval = parse({bytes, static_cast<std::size_t>(count)});
  if (!approval) return Status(Code::corrupt, path + " holds no approval");
  return *approval;
}

}  // namespace fingerpost
