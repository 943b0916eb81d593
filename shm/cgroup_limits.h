// The memory limits of the control groups this process lives in, its own and every ancestor's that
// can be seen, of version 1 and version 2. Beyond such a limit the kernel does not refuse memory:
// it kills.
//
// Parsing is a function of text; reading begins at a root folder, "" for this machine.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fingerpost {

// Where /proc/self/cgroup says that memory is accounted; nullopt where it does not say.
struct CgroupMembership {
  std::optional<std::string> v1;  // of the hierarchy with the memory controller
  std::optional<std::string> v2;
};
CgroupMembership parse_cgroup_membership(std::string_view proc_self_cgroup);

// Where such hierarchies are mounted, and which of their groups the mount shows as its top.
struct CgroupMount {
  unsigned version = 0;
  std::string group;   // "/" unless a container sees a part
  std::string folder;  // the mount point
};
std::vector<CgroupMount> parse_cgroup_mounts(std::string_view proc_self_mountinfo);

// A group as a folder of files to read.
struct CgroupFolder {
  unsigned version = 0;
  std::string folder;
};
// Own group first, then each ancestor up to the top of the mount. A group outside of what the mount
// shows (cgroup namespaces) counts as the mount's top.
std::vector<CgroupFolder> cgroup_folders(const CgroupMembership& membership,
                                         const std::vector<CgroupMount>& mounts);

// Both of the above, read below `root`. Empty where there are no control groups or they cannot be
// seen.
std::vector<CgroupFolder> own_cgroup_folders(const std::string& root);

struct CgroupLimit {
  std::string name;         // "memory.max of /sys/fs/cgroup/a"
  std::uint64_t limit = 0;  // bytes
  std::uint64_t available =
      0;  // limit - usage + file cache that the kernel would drop; never below 0
};
// The limits that one group sets. File cache on the inactive list counts as free; shared memory
// never does, since it cannot be dropped. memory.high is a limit too: what stays above it is
// throttled for ever.
std::vector<CgroupLimit> read_cgroup_limits(const std::string& root, const CgroupFolder& group);

}  // namespace fingerpost
