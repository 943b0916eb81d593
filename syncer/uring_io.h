// io_uring as a backend of SnapshotIo. The only pair of files that knows liburing.
#pragma once

#include <memory>

#include "syncer/snapshot_io.h"

namespace fingerpost {

// nullptr where the kernel, a seccomp filter or a limit refuses a ring, or the ring lacks an
// operation we need; `why` then names the call and the errno. A feature probe decides, never a
// kernel version.
std::unique_ptr<IoBackend> make_uring_backend(unsigned depth, IoFault& why);

}  // namespace fingerpost
