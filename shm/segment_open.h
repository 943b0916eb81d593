// Opening a segment that exists: whose it is, what it is and where it lies, all asked of the opened
// descriptor. Nothing here creates, unlinks or writes, and no open carries O_CREAT: in a sticky
// folder the kernel would refuse it to those who are not the owner (fs.protected_regular).
//
// A segment lies on a tmpfs and nowhere else. On a disk its pages would be written back behind the
// reader; on a network a page fault in a renamed file fails. Both sides refuse such a file.
//
// Thread-safety: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/file_identity.h"
#include "shm/status.h"
#include "shm/unique_fd.h"

namespace fingerpost {

// Whose segments a reader believes. Always: root's, its own (effective uid), and those of the owner
// of their folder if nobody else may write there. Besides these, `owner`; or anybody's, which is
// for private volumes and user namespaces, where owners show as 65534.
struct TrustedOwners {
  bool any = false;
  std::optional<uid_t> owner;
};

// From Options::owner, or where that is empty from $FINGERPOST_OWNER: a user's name, a uid, or
// "any". refused: no such user
Result<TrustedOwners> trusted_owners(std::string_view option);

struct OpenedSegment {
  UniqueFd fd;
  FileIdentity identity;
  uid_t owner = 0;
  std::uint64_t file_bytes = 0;  // where the file ends; its allocated blocks are fewer
};

// For a reader: read-only. Unless any owner is trusted, a file that its group or others may write
// is refused as well, since its bytes may be anybody's. absent · not_permitted · wrong_owner ·
// refused (a link, not a regular file, not on tmpfs) · io_error
Result<OpenedSegment> open_to_read(const std::string& path, const TrustedOwners& trusted);

// For the writer that means to adopt it: read and write. The segment must be root's, this
// process's, or `owner`'s, and nobody else may write it. Same codes.
Result<OpenedSegment> open_to_adopt(const std::string& path, uid_t owner);

// refused unless `fd` lies on a tmpfs; the message names `path` and the file system met.
Status check_on_tmpfs(int fd, const std::string& path);

}  // namespace fingerpost
