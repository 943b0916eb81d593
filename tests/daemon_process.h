// fingerpostd as a process of its own: its log is caught, and it does not outlive the test.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/temp_folder.h"

namespace fingerpost {

// Looks every 5 ms until `done`; false if that takes longer than `most`.
inline bool wait_until(const std::function<bool()>& done,
                       std::chrono::milliseconds most = std::chrono::seconds(10)) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (!done()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class DaemonProcess {
 public:
  struct Surroundings {
    std::map<std::string, std::string> environment;
    std::function<void()> before_exec;  // in the child
  };

  explicit DaemonProcess(const std::vector<std::string>& arguments,
                         const Surroundings& surroundings = {}) {
    std::vector<char*> argv = {const_cast<char*>(FINGERPOST_DAEMON)};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      for (const auto& [name, value] : surroundings.environment)
        ::setenv(name.c_str(), value.c_str(), 1);
      ::dup2(::open(log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
      ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
      if (surroundings.before_exec) surroundings.before_exec();
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~DaemonProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }

  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(log_path(), std::ios::binary).rdbuf();
    return text.str();
  }
  std::size_t log_count(const std::string& text) const {
    const std::string all = log();
    std::size_t count = 0;
    for (std::size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1))
      ++count;
    return count;
  }
  bool waits_to_log(const std::string& text) const {
    return wait_until([&] { return log_count(text) != 0; });
  }

  // The exit status; -1: killed, -2: it did not end in time.
  int end(std::chrono::milliseconds most = std::chrono::seconds(10)) {
    int status = 0;
    if (!wait_until([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, most)) return -2;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int stop() {
    signal(SIGTERM);
    return end();
  }

 private:
  std::string log_path() const { return folder_.file("log"); }

  TempFolder folder_;
  pid_t pid_ = -1;
};

}  // namespace fingerpost
