// A program as a process of its own, its output in a file, that does not outlive the test.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "shm/text_file.h"

namespace fingerpost {

// Until `done`, looked at every millisecond; false if `patience` is over first.
inline bool eventually(const std::function<bool()>& done,
                       std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// One process that this test started; killed with the object if it still runs.
class Process {
 public:
  // `prepare` runs in the child, just before the program does.
  Process(const std::vector<std::string>& command, const std::string& log,
          const std::function<void()>& prepare = {}) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("no fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing outlives a test that crashes
      const int to = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      ::dup2(to, STDOUT_FILENO);
      ::dup2(to, STDERR_FILENO);
      if (prepare) prepare();
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() { kill(); }

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // As it is killed when memory runs out: nothing of its own runs any more.
  void kill() {
    if (status_) return;
    signal(SIGKILL);
    wait();
  }
  // Whether it would not die of that signal, but hear it.
  bool hears(int number) const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:"))
        return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
    }
    return false;
  }
  bool is_running() { return !ended(WNOHANG); }
  // Its exit status, once it ends by itself; nullopt if it does not in time, or dies of a signal.
  std::optional<int> exit_status(std::chrono::milliseconds patience = std::chrono::seconds(10)) {
    if (!eventually([this] { return ended(WNOHANG); }, patience)) return std::nullopt;
    return WIFEXITED(*status_) ? std::optional(WEXITSTATUS(*status_)) : std::nullopt;
  }

 private:
  void wait() { ended(0); }
  bool ended(int options) {
    if (status_) return true;
    int status = 0;
    pid_t got = -1;
    while ((got = ::waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
    }
    if (got == pid_) status_ = status;
    return status_.has_value();
  }

  pid_t pid_ = -1;
  std::optional<int> status_;
};

// A line of /proc/PID/status, in KiB; 0 if there is none.
inline std::uint64_t kib_of(pid_t pid, std::string_view key) {
  const std::string status = "/proc/" + std::to_string(pid) + "/status";
  return number_after(read_text_file(status).value_or(""), key).value_or(0);
}

}  // namespace fingerpost
