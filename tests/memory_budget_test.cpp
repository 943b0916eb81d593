#include "shm/memory_budget.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "shm/unique_fd.h"
#include "tests/child_process.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr const char* kNoMount = "mounting is not permitted here";

struct File {
  std::string path;
  UniqueFd fd;
  explicit File(std::string where)
      : path(std::move(where)),
        fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (!fd) throw std::runtime_error("cannot make " + path);
  }
  std::uint64_t allocated() const { return *allocated_bytes(fd.get(), path); }
  std::uint64_t size() const {
    struct stat info {};
    return ::fstat(fd.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
  }
};

std::string outcome(const Status& status) {
  if (status.ok()) return "ok";
  return std::string(to_string(status.code())) + ": " + status.message();
}

bool mentions(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// Runs `body(folder)` in a child whose `folder` is a tmpfs with `options`; the mount ends with the
// child.
template <class Body>
std::string on_tmpfs(const std::string& options, Body body) {
  const TempFolder folder;
  const std::string complaint = in_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, options.c_str()) != 0) {
      return kNoMount;
    }
    return body(folder.path());
  });
  if (complaint != kNoMount) return complaint;
  MESSAGE("not tried: " << kNoMount);
  return {};
}

// A machine of files below a folder, of which each test writes what matters.
struct Machine : TempFolder {
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(file(path)).parent_path());
    std::ofstream(file(path)) << text;
  }
};

TEST_CASE("what is reserved is allocated, to the byte") {
  const TempFolder folder("/dev/shm");
  const File file(folder.file("s"));
  const MemoryBudget budget;
  REQUIRE(outcome(budget.reserve(file.fd.get(), 0, 5 * kMiB, file.path)) == "ok");
  CHECK(file.allocated() == 5 * kMiB);
  CHECK(file.size() == 5 * kMiB);
  // The second half begins far behind: between them nothing is allocated.
  REQUIRE(outcome(budget.reserve(file.fd.get(), 512 * kMiB, 4096, file.path)) == "ok");
  CHECK(file.allocated() == 5 * kMiB + 4096);
  CHECK(file.size() == 512 * kMiB + 4096);
  REQUIRE(budget.reserve(file.fd.get(), 5 * kMiB, 0, file.path).ok());
  CHECK(file.allocated() == 5 * kMiB + 4096);
}

TEST_CASE("what was reserved once and not said so costs nothing to reserve again") {
  const TempFolder folder("/dev/shm");
  const File file(folder.file("s"));
  const MemoryBudget budget;
  REQUIRE(budget.reserve(file.fd.get(), 0, 3 * kMiB, file.path).ok());
  REQUIRE(budget.reserve(file.fd.get(), kMiB, 3 * kMiB, file.path).ok());
  CHECK(file.allocated() == 4 * kMiB);
}

TEST_CASE("what is given back is free again and the file keeps its size") {
  const TempFolder folder("/dev/shm");
  const File file(folder.file("s"));
  REQUIRE(MemoryBudget().reserve(file.fd.get(), 0, 4 * kMiB, file.path).ok());
  REQUIRE(give_back(file.fd.get(), kMiB, 3 * kMiB, file.path).ok());
  CHECK(file.allocated() == kMiB);
  CHECK(file.size() == 4 * kMiB);
}

TEST_CASE("a range that is not whole pages, or beyond what a file can be, is refused") {
  const TempFolder folder("/dev/shm");
  const File file(folder.file("s"));
  const MemoryBudget budget;
  const std::uint64_t huge = ~std::uint64_t{0} - 4095;
  CHECK(budget.reserve(file.fd.get(), 1, 4096, file.path).code() == Code::refused);
  CHECK(budget.reserve(file.fd.get(), 0, 4095, file.path).code() == Code::refused);
  CHECK(budget.reserve(file.fd.get(), 4096, huge, file.path).code() == Code::refused);
  CHECK(budget.reserve(file.fd.get(), huge, 4096, file.path).code() == Code::refused);
  CHECK(give_back(file.fd.get(), 0, 100, file.path).code() == Code::refused);
  CHECK(file.allocated() == 0);
}

TEST_CASE("a file that is not on tmpfs is refused") {
  const std::string path = std::filesystem::current_path().string() + "/not-on-tmpfs";
  const File file(path);
  const Status met = MemoryBudget().reserve(file.fd.get(), 0, 4096, path);
  ::unlink(path.c_str());
  CHECK(met.code() == Code::refused);
}

TEST_CASE("too small a tmpfs is told before anything is allocated: needs, has, which limit") {
  CHECK(on_tmpfs("size=64m", [](const std::string& folder) -> std::string {
          const File file(folder + "/s");
          const std::string met =
              outcome(MemoryBudget().reserve(file.fd.get(), 0, 200 * kMiB, file.path));
          if (file.allocated() != 0 || file.size() != 0) return "something was allocated";
          const std::string expected = "no space: " + file.path + " needs 209,715,200 bytes, " +
                                       folder + " has 67,108,864 (limit: tmpfs size)";
          return met == expected ? "" : met;
        }) == "");
}

TEST_CASE("a failed reservation leaves what was allocated before, and later ones succeed") {
  CHECK(on_tmpfs("size=16m", [](const std::string& folder) -> std::string {
          const MemoryBudget budget;
          const File file(folder + "/s");
          if (!budget.reserve(file.fd.get(), 0, 6 * kMiB, file.path).ok()) return "first";
          const File hog(folder + "/hog");
          if (::fallocate(hog.fd.get(), 0, 0, 8 * kMiB) != 0) return "hog";
          if (budget.reserve(file.fd.get(), 6 * kMiB, 4 * kMiB, file.path).code() !=
              Code::no_space) {
            return "not refused";
          }
          if (file.allocated() != 6 * kMiB) return "changed: " + std::to_string(file.allocated());
          // The memory that is reserved can be written although the tmpfs is full.
          if (::fallocate(hog.fd.get(), 0, 0, 10 * kMiB) != 0) return "hog 2";
          void* bytes = ::mmap(nullptr, 6 * kMiB, PROT_WRITE, MAP_SHARED, file.fd.get(), 0);
          if (bytes == MAP_FAILED) return "mmap";
          std::memset(bytes, 1, 6 * kMiB);
          if (!give_back(hog.fd.get(), 0, 10 * kMiB, hog.path).ok()) return "hog 3";
          return budget.reserve(file.fd.get(), 6 * kMiB, 4 * kMiB, file.path).message();
        }) == "");
}

TEST_CASE("when the kernel refuses in the middle, what this call allocated is given back") {
  // The size that a file may have is no question of memory, so only the kernel knows: two steps
  // succeed.
  const TempFolder folder("/dev/shm");
  CHECK(in_child([&]() -> std::string {
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit limit{5 * kMiB, 5 * kMiB};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
          const File file(folder.file("s"));
          const Status met = MemoryBudget().reserve(file.fd.get(), 0, 8 * kMiB, file.path);
          if (met.ok()) return "not refused";
          if (!mentions(met.message(), file.path)) return met.message();
          return file.allocated() == 0 ? "" : std::to_string(file.allocated());
        }) == "");
}

TEST_CASE("a tmpfs without a size limit is no limit") {
  CHECK(on_tmpfs("size=0", [](const std::string& folder) -> std::string {
          const File file(folder + "/s");
          return MemoryBudget().reserve(file.fd.get(), 0, 4 * kMiB, file.path).message();
        }) == "");
}

TEST_CASE("a storm of signals does not stop a reservation, and the signals are delivered") {
  const TempFolder folder("/dev/shm");
  CHECK(in_child([&]() -> std::string {
          static volatile sig_atomic_t delivered = 0;
          struct sigaction action {};
          action.sa_handler = [](int) { delivered = 1; };
          ::sigaction(SIGALRM, &action, nullptr);
          const MemoryBudget budget;
          const File file(folder.file("s"));
          const itimerval often{{0, 100}, {0, 100}};
          ::setitimer(ITIMER_REAL, &often, nullptr);
          const Status met = budget.reserve(file.fd.get(), 0, 64 * kMiB, file.path);
          const itimerval never{};
          ::setitimer(ITIMER_REAL, &never, nullptr);
          if (!met.ok()) return met.message();
          if (delivered == 0) return "no signal was delivered";
          return file.allocated() == 64 * kMiB ? "" : std::to_string(file.allocated());
        }) == "");
}

TEST_CASE("the least of all limits decides, and headroom is kept where a limit kills") {
  const Machine machine;
  machine.write("proc/self/cgroup", "4:memory:/a/b\n0::/\n");
  machine.write("proc/self/mountinfo", "34 30 0:31 / /cg rw - cgroup cgroup rw,memory\n");
  machine.write("cg/a/b/memory.limit_in_bytes", std::to_string(200 * kMiB));
  machine.write("cg/a/b/memory.usage_in_bytes", std::to_string(20 * kMiB));
  machine.write("cg/a/memory.limit_in_bytes", std::to_string(100 * kMiB));
  machine.write("cg/a/memory.usage_in_bytes", std::to_string(60 * kMiB));
  const TempFolder folder("/dev/shm");
  const File file(folder.file("s"));
  const MemoryBudget budget(machine.path());
  auto limit = budget.tightest(file.fd.get(), file.path);
  REQUIRE(limit.ok());
  CHECK(limit->name == "memory.limit_in_bytes of /cg/a");
  CHECK(limit->available == 36 * kMiB);
  const std::string met = outcome(budget.reserve(file.fd.get(), 0, 40 * kMiB, file.path));
  CHECK(mentions(met, "needs 41,943,040 bytes"));
  CHECK(mentions(met, "has 37,748,736 (limit: memory.limit_in_bytes of /cg/a)"));
  CHECK(file.allocated() == 0);

  machine.write("proc/meminfo", "MemAvailable:  20480 kB\nSwapFree:  4096 kB\n");
  limit = budget.tightest(file.fd.get(), file.path);
  CHECK(limit->name == "available memory of the machine");
  CHECK(limit->available == 20 * kMiB);
}

TEST_CASE("the commit limit counts only where overcommit is off") {
  const Machine machine;
  machine.write("proc/meminfo", "CommitLimit:    30720 kB\nCommitted_AS:   20480 kB\n");
  machine.write("proc/sys/vm/overcommit_memory", "0\n");
  const TempFolder folder("/dev/shm");
  const File file(folder.file("s"));
  const MemoryBudget budget(machine.path());
  CHECK(budget.tightest(file.fd.get(), file.path)->name == "tmpfs size");
  machine.write("proc/sys/vm/overcommit_memory", "2\n");
  CHECK(budget.tightest(file.fd.get(), file.path)->name == "CommitLimit");
  CHECK(budget.tightest(file.fd.get(), file.path)->available == 6 * kMiB);
}

// A real control group with a limit, where this machine lets one be made.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::uint64_t limit) {
    for (const CgroupFolder& group : own_cgroup_folders("")) {
      const std::string folder = group.folder + "/fingerpost-test-" + std::to_string(::getpid());
      const char* file = group.version == 1 ? "/memory.limit_in_bytes" : "/memory.max";
      if (::mkdir(folder.c_str(), 0755) != 0) continue;
      folder_ = folder;
      std::ofstream out(folder + file);
      if (out && (out << limit << std::flush)) return;
      ::rmdir(folder.c_str());
      folder_.clear();
    }
  }
  ~MemoryGroup() {
    if (made()) ::rmdir(folder_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool made() const { return !folder_.empty(); }
  bool enter() const {
    std::ofstream out(folder_ + "/cgroup.procs");
    return bool(out << "0" << std::flush);
  }

 private:
  std::string folder_;
};

TEST_CASE(
    "under a real control group's limit the reservation is refused where fallocate would be "
    "killed") {
  const MemoryGroup group(64 * kMiB);
  if (!group.made()) {
    MESSAGE("not tried: no memory control group can be made here");
    return;
  }
  const TempFolder folder("/dev/shm");
  CHECK(in_child([&]() -> std::string {
          if (!group.enter()) return "cannot enter the group";
          const MemoryBudget budget;
          const File file(folder.file("s"));
          const std::string met = outcome(budget.reserve(file.fd.get(), 0, 100 * kMiB, file.path));
          if (!mentions(met, "no space") || !mentions(met, "fingerpost-test-")) return met;
          if (file.allocated() != 0) return "something was allocated";
          // All that the budget says may be taken can be taken and written.
          const std::uint64_t most =
              budget.tightest(file.fd.get(), file.path)->available / 4096 * 4096;
          if (most < 40 * kMiB) return "too careful: " + std::to_string(most);
          const std::uint64_t bytes = most - 8 * kMiB;  // what the test itself takes meanwhile
          if (Status status = budget.reserve(file.fd.get(), 0, bytes, file.path); !status.ok()) {
            return status.message();
          }
          void* at = ::mmap(nullptr, bytes, PROT_WRITE, MAP_SHARED, file.fd.get(), 0);
          if (at == MAP_FAILED) return "mmap";
          std::memset(at, 1, bytes);
          return {};
        }) == "");
}

}  // namespace
}  // namespace fingerpost
