#include "shm/segment_path.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace fingerpost {
namespace {

constexpr std::string_view kLockEnding = ".lock";
constexpr std::string_view kApprovalEnding = ".approval";
constexpr std::string_view kHalfMadeEnding = ".new";

bool is_digit(char c) noexcept {
  return '0' <= c && c <= '9';
}

bool is_name_character(char c) noexcept {
  return is_digit(c) || ('A' <= c && c <= 'Z') || ('a' <= c && c <= 'z') || c == '.' || c == '_' ||
         c == '-';
}

// ".l" and digits.
bool has_layout_ending(std::string_view name) noexcept {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view ending = name.substr(dot);
  return ending.size() > 2 && ending[1] == 'l' &&
         std::all_of(ending.begin() + 2, ending.end(), is_digit);
}

std::string layout_ending(unsigned layout) {
  return layout < 2 ? std::string() : ".l" + std::to_string(layout);
}

bool is_path(std::string_view name_or_path) noexcept {
  return name_or_path.find('/') != std::string_view::npos;
}

// Absolute, because a daemon may change its folder between opening and opening anew.
Result<std::string> explicit_path(std::string_view path, unsigned layout) {
  if (path.ends_with('/') || path.find('\0') != std::string_view::npos) {
    return Status(Code::refused, "'" + std::string(path) + "' is not the path of a file");
  }
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  if (error) return Status::from_errno(error.value(), "cannot tell the current folder");
  const std::string ending = layout_ending(layout);
  if (!absolute.ends_with(ending)) absolute += ending;
  return absolute;
}

Status check(std::string_view name, const SegmentFolders& folders) {
  if (const auto why = why_not_segment_name(name)) {
    return {Code::refused, "the segment name '" + std::string(name) + "' " + std::string(*why)};
  }
  if (!folders.configured.empty() && folders.configured.front() != '/') {
    return {Code::refused,
            "FINGERPOST_RUNDIR is '" + folders.configured + "', which is not an absolute path"};
  }
  return {};
}

std::string path_in(const std::string& folder, std::string_view name, unsigned layout) {
  return folder + "/fingerpost." + std::string(name) + layout_ending(layout);
}

}  // namespace

std::optional<std::string_view> why_not_segment_name(std::string_view name) noexcept {
  if (name.empty()) return "is empty";
  if (name.size() > kSegmentNameBytesMax) return "is longer than 64 bytes";
  if (name.front() == '.') return "begins with a dot";
  if (!std::all_of(name.begin(), name.end(), is_name_character)) {
    return "holds something other than A-Z a-z 0-9 . _ -";
  }
  if (name.ends_with(kLockEnding)) return "ends in '.lock', as lock files do";
  if (name.ends_with(kApprovalEnding)) return "ends in '.approval', as a host's approvals do";
  if (name.ends_with(kHalfMadeEnding)) return "ends in '.new', as half-made segments do";
  if (has_layout_ending(name)) return "ends in '.l' and a number, as segments of a layout do";
  return std::nullopt;
}

SegmentFolders SegmentFolders::of_this_process() {
  SegmentFolders folders;
  if (const char* rundir = ::secure_getenv("FINGERPOST_RUNDIR")) folders.configured = rundir;
  return folders;
}

Result<std::string> path_to_read(std::string_view name_or_path, unsigned layout,
                                 const SegmentFolders& folders) {
  if (is_path(name_or_path)) return explicit_path(name_or_path, layout);
  if (Status status = check(name_or_path, folders); !status.ok()) return status;
  std::string looked_at;
  for (const std::string* folder : {&folders.configured, &folders.packaged, &folders.common}) {
    if (folder->empty()) continue;
    std::string path = path_in(*folder, name_or_path, layout);
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0) return path;
    if (errno != ENOENT && errno != ENOTDIR) {
      return Status::from_errno(errno, "cannot look for " + path);
    }
    looked_at += (looked_at.empty() ? "" : ", ") + path;
  }
  return Status(Code::absent,
                "no segment is named '" + std::string(name_or_path) + "'; looked at " + looked_at);
}

Result<std::string> path_to_write(std::string_view name_or_path, unsigned layout,
                                  const SegmentFolders& folders) {
  if (is_path(name_or_path)) return explicit_path(name_or_path, layout);
  if (Status status = check(name_or_path, folders); !status.ok()) return status;
  if (!folders.configured.empty()) return path_in(folders.configured, name_or_path, layout);
  struct stat info {};
  const bool packaged = ::stat(folders.packaged.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  return path_in(packaged ? folders.packaged : folders.common, name_or_path, layout);
}

std::string lock_path(const std::string& segment_path) {
  return segment_path + std::string(kLockEnding);
}

std::string approval_path(const std::string& segment_path) {
  return segment_path + std::string(kApprovalEnding);
}

std::string half_made_path(const std::string& segment_path) {
  return segment_path + std::string(kHalfMadeEnding);
}

}  // namespace fingerpost
