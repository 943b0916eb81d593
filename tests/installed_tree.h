// What an installed tree is asked in the tests: to compile a worker, and to serve it.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/run_program.h"

namespace fingerpost {

inline Ran run_shell(const std::string& line) {
  return run_program("/bin/sh", {"-c", line});
}

inline std::string sanitizer_flags() {
  const std::string sanitizers = FINGERPOST_SANITIZERS;
  return sanitizers.empty() ? "" : "-fsanitize=" + sanitizers;
}

// Compiles tests/install_consumer against the tree below `prefix`; its program is put into
// `folder`, and its path returned.
inline std::string worker_by_find_package(const std::string& prefix, const std::string& folder) {
  const Ran configured = run_shell(
      FINGERPOST_CMAKE " -G Ninja -S " FINGERPOST_CONSUMER " -B " + folder +
      "/find_package -DCMAKE_CXX_COMPILER=" FINGERPOST_CXX " -DCMAKE_PREFIX_PATH=" + prefix +
      " -DCMAKE_CXX_FLAGS=" + sanitizer_flags());
  INFO(configured.out, configured.err);
  REQUIRE(configured.status == 0);
  const Ran built = run_shell(FINGERPOST_CMAKE " --build " + folder + "/find_package");
  INFO(built.out, built.err);
  REQUIRE(built.status == 0);
  return folder + "/find_package/worker";
}

inline std::string worker_by_pkg_config(const std::string& pkgconfig_dir,
                                        const std::string& folder) {
  const Ran built =
      run_shell("export PKG_CONFIG_PATH=" + pkgconfig_dir + "; " FINGERPOST_CXX " -std=c++20 " +
                sanitizer_flags() +
                " $(pkg-config --cflags fingerpost) " FINGERPOST_CONSUMER "/main.cpp -o " + folder +
                "/worker $(pkg-config --libs fingerpost)");
  INFO(built.out, built.err);
  REQUIRE(built.status == 0);
  return folder + "/worker";
}

// Makes a directory with `bindir`/fingerpost, serves it with `bindir`/fingerpostd, and asks each of
// the workers for a tenant of it.
inline void check_serves(const std::string& bindir, const std::vector<std::string>& workers) {
  const TempFolder state;
  const TempFolder run("/dev/shm");
  const std::string directory = state.file("directory.db");
  const Ran made =
      run_shell("set -e; export FINGERPOST_DIRECTORY=" + directory + " PATH=" + bindir +
                ":$PATH; fingerpost init --buckets 16; fingerpost shard add alpha; "
                "fingerpost tenant create acme --shard alpha");
  INFO(made.out, made.err);
  REQUIRE(made.status == 0);
  const std::string segment = run.file("orders");
  const std::string program = bindir + "/fingerpostd";
  const pid_t daemon = ::fork();
  REQUIRE(daemon >= 0);
  if (daemon == 0) {
    ::execl(program.c_str(), program.c_str(), "--name", segment.c_str(), "--directory",
            directory.c_str(), "--state-dir", state.path().c_str(), nullptr);
    ::_exit(127);
  }
  for (const std::string& worker : workers) {
    Ran asked;
    for (int i = 0; i < 100 && asked.out.empty(); ++i) {
      asked = run_program(worker, {segment, "acme"});
      if (asked.out.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    CHECK_MESSAGE(asked.out == "alpha\n", worker, ": ", asked.err);
  }
  ::kill(daemon, SIGTERM);
  int status = -1;
  ::waitpid(daemon, &status, 0);
  CHECK(status == 0);
}

}  // namespace fingerpost
