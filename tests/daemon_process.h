// fingerpostd with any arguments and surroundings: what it logs is caught, and it does not outlive
// the test.
#pragma once

#include <stdlib.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/process.h"
#include "tests/temp_folder.h"

namespace fingerpost {

class DaemonProcess {
 public:
  struct Surroundings {
    std::map<std::string, std::string> environment;
    std::function<void()> before_exec;  // in the child
  };

  explicit DaemonProcess(const std::vector<std::string>& arguments,
                         const Surroundings& surroundings = {})
      : process_(command(arguments), log_path(), [&] {
          for (const auto& [name, value] : surroundings.environment)
            ::setenv(name.c_str(), value.c_str(), 1);
          if (surroundings.before_exec) surroundings.before_exec();
        }) {}

  pid_t pid() const { return process_.pid(); }
  void signal(int number) const { process_.signal(number); }

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
    return eventually([&] { return log_count(text) != 0; });
  }

  // The exit status; nothing if it did not end in time, or died of a signal.
  std::optional<int> end() { return process_.exit_status(); }
  std::optional<int> stop() {
    signal(SIGTERM);
    return end();
  }

 private:
  static std::vector<std::string> command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FINGERPOST_DAEMON);
    return arguments;
  }
  std::string log_path() const { return folder_.file("log"); }

  TempFolder folder_;
  Process process_;
};

}  // namespace fingerpost
