// Reserving a segment's memory before it is written.
//
// On tmpfs a page that was not reserved is taken at the first touch, and where there is none left
// the touch kills: by SIGBUS if the tmpfs is full, by the OOM killer if a control group or the
// machine is. fallocate meets only the first of these with an error. So what may be taken is asked
// first: the room of the tmpfs, the limits of every control group above this process, the commit
// limit where overcommit is off, and what the machine has to give.
//
// Thread-safety: any thread; of one file, the one writer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shm/cgroup_limits.h"
#include "shm/status.h"

namespace fingerpost {

// fallocate goes in steps of this many bytes: between two steps others' consumption is seen, and
// signals are delivered.
inline constexpr std::uint64_t kReserveStepBytes = 2 << 20;

// Left free below each limit that kills instead of refusing: for page tables, the kernel's own
// records of the file, and what this and the other processes of the group allocate meanwhile.
inline constexpr std::uint64_t kMemoryHeadroomBytes = 4 << 20;

struct MemoryLimit {
  std::string name;
  std::uint64_t available = 0;  // bytes that may be taken; headroom is off already
};

class MemoryBudget {
 public:
  // Finds the control groups. `root` stands before /proc and the control groups' folders: "" for
  // this machine.
  explicit MemoryBudget(std::string root = {});

  // The limit that leaves least for the file `fd` right now. `path` names it in messages.
  Result<MemoryLimit> tightest(int fd, const std::string& path) const;

  // Allocates [offset, offset + bytes) of `fd`, both multiples of the page size. The caller vouches
  // that nothing at or above `offset` is in use, so on failure all of it is given back. The file
  // grows to the end of the range if it is shorter and never shrinks, so on failure it may end in a
  // hole. no_space: "needs N bytes, PATH has M (limit: L)" · refused: no multiples, or the file is
  // not on tmpfs
  Status reserve(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& path) const;

 private:
  std::vector<MemoryLimit> limits_of_the_machine() const;

  std::string root_;
  std::vector<CgroupFolder> groups_;
};

// Gives back the memory of [offset, offset + bytes), page multiples, which nobody may have in use:
// what a writer reserved and died before it said so, for example. The file keeps its size.
Status give_back(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& path);

// The bytes that `fd` really occupies: its blocks, not its size.
Result<std::uint64_t> allocated_bytes(int fd, const std::string& path);

}  // namespace fingerpost
