// A folder of this run's own, gone with everything in it at the end.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace fingerpost::bench {

inline constexpr const char* kTmpfs = "/dev/shm";
inline constexpr const char* kDisk = "/tmp";

class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& beneath)
      : path_(beneath + "/fingerpost-bench-XXXXXX"), owner_(::getpid()) {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
  }
  // In a forked child it is the parent's still.
  ~ScratchFolder() {
    std::error_code ignored;
    if (::getpid() == owner_) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  pid_t owner_;
};

}  // namespace fingerpost::bench
