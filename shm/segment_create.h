// Making a segment's file: under one fixed name beside the segment, with exactly the owner, group
// and mode that are configured, and then into its name by one rename, complete or not at all.
//
// Only the holder of the writer lock may call any of this. No file is ever truncated or shrunk
// here: readers may have it mapped.
//
// Thread-safety: one thread at a time.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "shm/file_identity.h"
#include "shm/status.h"
#include "shm/unique_fd.h"

namespace fingerpost {

// Who may do what with a segment. Only the owner may write, or a worker could change everybody's
// routes.
struct SegmentAccess {
  uid_t owner = 0;
  gid_t group = 0;
  mode_t mode = 0640;

  bool operator==(const SegmentAccess&) const = default;

  // This process's own account (effective ids), mode 0640.
  static SegmentAccess of_this_process() noexcept;
};

// As an open file has it.
Result<SegmentAccess> access_of(int fd, const std::string& path);

// "root (uid 0), gid 0, mode 0640".
std::string access_text(const SegmentAccess& access);

// Why nobody's segment may have this mode, as the end of a sentence; nullopt if it may: a mode
// without owner's read and write, or with more than 0644.
std::optional<std::string_view> why_not_segment_mode(mode_t mode) noexcept;

// Gives an open file exactly this owner, group and mode, whatever the umask, and looks whether it
// worked. refused: the mode is none of a segment · not_permitted
Status apply_access(int fd, const SegmentAccess& access, const std::string& path);

// Removes a half-made segment that a writer left who died. Its absence is no error.
Status remove_half_made(const std::string& segment_path);

// A segment without its name yet. If it goes away before it was published, so does the file.
class HalfMadeSegment {
 public:
  // Removes what is left of an earlier one and makes an empty file, with its account and mode
  // already. refused: the folder is not on tmpfs, or the mode is not acceptable · not_permitted ·
  // absent · no_space
  static Result<HalfMadeSegment> create(const std::string& segment_path,
                                        const SegmentAccess& access);

  HalfMadeSegment(HalfMadeSegment&&) noexcept = default;
  HalfMadeSegment& operator=(HalfMadeSegment&&) = delete;
  ~HalfMadeSegment();

  int fd() const noexcept { return fd_.get(); }
  const FileIdentity& identity() const noexcept { return identity_; }

  // Gives it the name, where nothing must have it. conflict: something has; the file stays
  // half-made.
  Status publish_first();

  // Gives it the name in the place of what has it, if anything has: there is no moment without.
  Status publish_successor();

  // The descriptor of a published segment, which keeps it and its locks.
  UniqueFd take_fd() && { return std::move(fd_); }

 private:
  HalfMadeSegment(std::string segment_path, UniqueFd fd, FileIdentity identity);
  Status publish(unsigned rename_flags);

  std::string segment_path_;
  UniqueFd fd_;
  FileIdentity identity_;
  bool published_ = false;
};

}  // namespace fingerpost
