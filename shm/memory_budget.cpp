#include "shm/memory_budget.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "shm/number_text.h"
#include "shm/segment_open.h"
#include "shm/text_file.h"

namespace fingerpost {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kKibibyte = 1024;
constexpr std::uint64_t kStatBlockBytes = 512;  // the unit of st_blocks, whatever st_blksize says

std::uint64_t page_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t less(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

bool is_page_range(std::uint64_t offset, std::uint64_t bytes) {
  const auto end_max = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  return offset % page_bytes() == 0 && bytes % page_bytes() == 0 && offset <= end_max &&
         bytes <= end_max - offset;
}

Status not_a_page_range(std::uint64_t offset, std::uint64_t bytes, const std::string& path) {
  return {Code::refused,
          "not whole pages of " + path + ": " + grouped(bytes) + " bytes at " + grouped(offset)};
}

Result<MemoryLimit> limit_of_tmpfs(int fd, const std::string& path) {
  struct statvfs info {};
  if (::fstatvfs(fd, &info) != 0) {
    return Status::from_errno(errno, "cannot tell the free space of " + path);
  }
  // A tmpfs that is mounted without a size counts no blocks.
  if (info.f_blocks == 0) return MemoryLimit{"tmpfs size", kUnlimited};
  return MemoryLimit{"tmpfs size", std::uint64_t{info.f_bavail} * info.f_frsize};
}

Status too_little(std::uint64_t needed, const MemoryLimit& limit, const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  return {Code::no_space, path + " needs " + grouped(needed) + " bytes, " + folder + " has " +
                              grouped(limit.available) + " (limit: " + limit.name + ")"};
}

// Holds this thread's signals back. On older kernels any that arrives makes fallocate on tmpfs undo
// all it did, so that signals more frequent than a step is long would never let one end.
class SignalsHeldBack {
 public:
  SignalsHeldBack() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeldBack() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  sigset_t before_;
};

// 0, or errno.
int change_allocation(int fd, int mode, std::uint64_t offset, std::uint64_t bytes) {
  const SignalsHeldBack held_back;
  // What else interrupts (a debugger, a freezer) is not blocked, and rare.
  while (::fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

MemoryBudget::MemoryBudget(std::string root)
    : root_(std::move(root)), groups_(own_cgroup_folders(root_)) {}

std::vector<MemoryLimit> MemoryBudget::limits_of_the_machine() const {
  std::vector<MemoryLimit> limits;
  const std::string meminfo = read_text_file(root_ + "/proc/meminfo").value_or("");
  if (const auto free = number_after(meminfo, "MemAvailable")) {
    const std::uint64_t bytes = (*free + number_after(meminfo, "SwapFree").value_or(0)) * kKibibyte;
    limits.push_back({"available memory of the machine", less(bytes, kMemoryHeadroomBytes)});
  }
  const std::string overcommit =
      read_text_file(root_ + "/proc/sys/vm/overcommit_memory").value_or("");
  const auto commit_limit = number_after(meminfo, "CommitLimit");
  const auto committed = number_after(meminfo, "Committed_AS");
  if (number_in(overcommit) == 2 && commit_limit && committed) {
    const std::uint64_t bytes = less(*commit_limit, *committed) * kKibibyte;
    limits.push_back({"CommitLimit", less(bytes, kMemoryHeadroomBytes)});
  }
  return limits;
}

Result<MemoryLimit> MemoryBudget::tightest(int fd, const std::string& path) const {
  Result<MemoryLimit> tightest = limit_of_tmpfs(fd, path);
  if (!tightest) return tightest;
  const auto consider = [&](MemoryLimit limit) {
    if (limit.available < tightest->available) *tightest = std::move(limit);
  };
  for (const CgroupFolder& group : groups_) {
    for (const CgroupLimit& limit : read_cgroup_limits(root_, group)) {
      consider({limit.name, less(limit.available, kMemoryHeadroomBytes)});
    }
  }
  for (MemoryLimit& limit : limits_of_the_machine()) consider(std::move(limit));
  return tightest;
}

Status MemoryBudget::reserve(int fd, std::uint64_t offset, std::uint64_t bytes,
                             const std::string& path) const {
  if (!is_page_range(offset, bytes)) return not_a_page_range(offset, bytes, path);
  if (Status status = check_on_tmpfs(fd, path); !status.ok()) return status;
  std::uint64_t touched = 0;
  Status failure;
  while (touched < bytes && failure.ok()) {
    const std::uint64_t rest = bytes - touched;
    const Result<MemoryLimit> limit = tightest(fd, path);
    if (!limit) {
      failure = limit.status();
    } else if (limit->available < rest) {
      failure = too_little(rest, *limit, path);
    } else {
      const std::uint64_t step = std::min(kReserveStepBytes, rest);
      if (const int error = change_allocation(fd, 0, offset + touched, step); error != 0) {
        failure =
            Status::from_errno(error, "cannot reserve " + grouped(rest) + " bytes of " + path);
      }
      touched += step;
    }
  }
  if (failure.ok()) return failure;
  if (Status status = give_back(fd, offset, touched, path); !status.ok()) {
    return {failure.code(), failure.message() + "; and then: " + status.message()};
  }
  return failure;
}

Status give_back(int fd, std::uint64_t offset, std::uint64_t bytes, const std::string& path) {
  if (!is_page_range(offset, bytes)) return not_a_page_range(offset, bytes, path);
  if (bytes == 0) return {};
  constexpr int kMode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (const int error = change_allocation(fd, kMode, offset, bytes); error != 0) {
    return Status::from_errno(error, "cannot give back " + grouped(bytes) + " bytes of " + path);
  }
  return {};
}

Result<std::uint64_t> allocated_bytes(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::from_errno(errno, "cannot examine " + path);
  return static_cast<std::uint64_t>(info.st_blocks) * kStatBlockBytes;
}

}  // namespace fingerpost
