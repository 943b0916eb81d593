// Runs a program as a shell would: arguments as they are, standard input from a text, outputs
// caught.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace fingerpost {

struct Ran {
  int status = -1;  // the exit status; -1 if it was killed
  std::string out;
  std::string err;
};

inline Ran run_program(const std::string& program, const std::vector<std::string>& arguments,
                       const std::string& input = {}) {
  const TempFolder folder;
  const auto text_of = [&](const char* name) {
    std::ostringstream text;
    text << std::ifstream(folder.file(name), std::ios::binary).rdbuf();
    return text.str();
  };
  std::ofstream(folder.file("in"), std::ios::binary) << input;
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no fork");
  if (child == 0) {
    ::dup2(::open(folder.file("in").c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open(folder.file("out").c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(::open(folder.file("err").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("no child");
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of("out"), text_of("err")};
}

}  // namespace fingerpost
