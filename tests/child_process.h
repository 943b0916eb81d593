// Runs a part of a test in a forked child, for what would outlive it in this process: seccomp
// filters, mounts, other uids.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <string>

namespace fingerpost {

// What `body` returns in the child (a complaint, empty if all is well), or how the child died.
template <class Body>
std::string in_child(Body body) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child < 0) return "no fork";
  if (child == 0) {
    std::string complaint;
    try {
      complaint = body();
    } catch (const std::exception& thrown) {
      complaint = thrown.what();
    }
    const bool told = ::write(ends[1], complaint.data(), complaint.size()) ==
                      static_cast<ssize_t>(complaint.size());
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  std::string complaint;
  char bytes[4'096];
  for (ssize_t n = 0; (n = ::read(ends[0], bytes, sizeof bytes)) > 0;) {
    complaint.append(bytes, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) complaint += " (the child ended with status " + std::to_string(status) + ")";
  return complaint;
}

}  // namespace fingerpost
