// Which file a descriptor is, and whether a name still means that file.
//
// Thread-safety: functions of their arguments and the file system.
#pragma once

#include <sys/types.h>

#include <string>

#include "shm/status.h"

namespace fingerpost {

// Never equal to that of another file as long as this one is open or mapped somewhere.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity&) const = default;
};

enum class NameState : unsigned char {
  same,      // the name means this very file
  gone,      // nothing has the name
  replaced,  // the name means another file
  unknown,   // the kernel does not say (a folder that may not be searched, for example)
};

// `path` is for the message only.
Result<FileIdentity> identity_of(int fd, const std::string& path);

// What `path` means now; a symbolic link is not followed. One system call.
NameState name_state(const std::string& path, const FileIdentity& file) noexcept;

}  // namespace fingerpost
