// What an administrator allows one host's poison guard to let through, where the directory itself
// cannot be asked or should not be: a small file beside the segment, written by
// `fingerpost approve --this-host` and read by the syncer.
//
// It holds for one history: directory and incarnation must be those that are served, so that an
// approval given before a restore allows nothing after it. It counts only if it is the syncer's own
// user's, or root's, and nobody else may write it.
//
// Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "shm/directory_id.h"
#include "shm/status.h"

namespace fingerpost {

struct HostApproval {
  DirectoryId directory_id{};
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;  // changes up to this one may be applied

  bool operator==(const HostApproval&) const = default;
};

// Replaces what was approved before. not_permitted, no_space and other errors of the file name it.
Status write_host_approval(const std::string& segment_path, const HostApproval& approval);

// absent: there is none · wrong_owner: somebody else can write it, so it allows nothing · corrupt
Result<HostApproval> read_host_approval(const std::string& segment_path);

}  // namespace fingerpost
