// One writer per segment, by kernel locks that die with their holder: nothing here asks whether a
// process is alive, so pid namespaces do not matter and nothing is ever removed by hand.
//
// Two locks. The first is on `<path>.lock`, which only the writer's account can open. It says who
// may be the writer of that *name*, and it means something only while the locked file is still the
// one under the name: the heartbeat asks with `hold`. The second is on the segment itself, so that
// nobody adopts a segment that another writer holds although the lock file was removed or replaced
// meanwhile.
//
// Both are open-file-description locks: they end when the last copy of the descriptor is closed.
// The descriptors are close-on-exec, so a program that the writer starts does not keep them.
//
// Thread-safety: one thread at a time.
#pragma once

#include <sys/types.h>

#include <string>

#include "shm/file_identity.h"
#include "shm/status.h"
#include "shm/unique_fd.h"

namespace fingerpost {

class WriterLock {
 public:
  // Takes the lock of `segment_path`, making its file where there is none, mode 0600 whatever the
  // umask. A file that is not root's, this process's or `owner`'s is not trusted: its owner could
  // hold it for ever. busy: another writer holds it · wrong_owner · not_permitted · refused (not a
  // regular file) · absent (no such folder)
  static Result<WriterLock> acquire(const std::string& segment_path, uid_t owner);

  // For the heartbeat. Makes sure that the locked file is the one under the name; where the name
  // vanished or was replaced, takes the lock of the file that is there now, or of a new one. busy:
  // another writer has the name, so the caller must stop writing. After any other failure the lock
  // held before is still held; the next beat asks again.
  Status hold();

 private:
  WriterLock(std::string segment_path, uid_t owner, UniqueFd fd, FileIdentity identity);

  std::string segment_path_;
  uid_t owner_;
  UniqueFd fd_;
  FileIdentity identity_;
};

enum class SegmentLock : unsigned char {
  held,
  reader_in_the_way,  // somebody's read lock refuses ours; to be counted, and tried again by the
                      // heartbeat
};

// Locks the segment itself for writing, through the writer's own descriptor, which keeps the lock
// as long as it is open. To repeat it on a descriptor that holds the lock changes nothing. A worker
// can take a read lock, since it can read: that is no reason to stop, and is told from another
// writer's lock. busy: another writer holds it
Result<SegmentLock> lock_segment(int fd, const std::string& path);

}  // namespace fingerpost
