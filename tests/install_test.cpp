#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/installed_tree.h"

using namespace fingerpost;

namespace {

// Installed once for all tests of this program.
const std::string& prefix() {
  static const TempFolder folder;
  static const Ran installed =
      run_shell(FINGERPOST_CMAKE " --install " FINGERPOST_BUILD " --prefix " + folder.path());
  REQUIRE_MESSAGE(installed.status == 0, installed.err);
  return folder.path();
}

}  // namespace

TEST_CASE("a worker compiles against an installed tree in both ways and is served by it") {
  const TempFolder folder;
  check_serves(
      prefix() + "/bin",
      {worker_by_find_package(prefix(), folder.path()),
       worker_by_pkg_config(prefix() + "/" FINGERPOST_LIBDIR "/pkgconfig", folder.path())});
}

TEST_CASE("a C program compiles against an installed tree in both ways") {
  const TempFolder folder;
  const std::string libraries = prefix() + "/" FINGERPOST_LIBDIR;
  const Ran by_pkg_config = run_shell(
      "export PKG_CONFIG_PATH=" + libraries +
      "/pkgconfig; cc -std=c99 " FINGERPOST_ABI_SOURCE "/consumer.c -o " + folder.file("consumer") +
      " $(pkg-config --cflags --libs fingerpost-c) " + sanitizer_flags());
  REQUIRE_MESSAGE(by_pkg_config.status == 0, by_pkg_config.err);
  const Ran asked = run_shell("LD_LIBRARY_PATH=" + libraries + " " + folder.file("consumer") +
                              " no-such-name /dev/null");
  CHECK(asked.status == 1);
  CHECK_MESSAGE(asked.err.find("absent: no segment is named 'no-such-name'") != std::string::npos,
                asked.err);

  std::ofstream(folder.file("CMakeLists.txt"))
      << "cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES C CXX)\n"
         "find_package(fingerpost 0.1 REQUIRED)\n"
         "add_executable(consumer " FINGERPOST_ABI_SOURCE
         "/consumer.c)\n"
         "target_link_libraries(consumer PRIVATE fingerpost::c)\n";
  const Ran by_find_package = run_shell(FINGERPOST_CMAKE " -G Ninja -S " + folder.path() + " -B " +
                                        folder.file("build") + " -DCMAKE_PREFIX_PATH=" + prefix() +
                                        " && " FINGERPOST_CMAKE " --build " + folder.file("build"));
  REQUIRE_MESSAGE(by_find_package.status == 0, by_find_package.out, by_find_package.err);
  CHECK(run_program(folder.file("build/consumer"), {"no-such-name", "/dev/null"}).status == 1);
}

TEST_CASE("a worker's error says what is missing") {
  const TempFolder folder;
  const std::string worker =
      worker_by_pkg_config(prefix() + "/" FINGERPOST_LIBDIR "/pkgconfig", folder.path());
  const Ran asked = run_program(worker, {"no-such-name", "acme"});
  CHECK(asked.status == 4);
  CHECK(asked.err.find("no segment is named 'no-such-name'") != std::string::npos);
}

TEST_CASE("systemd accepts the unit without a word, and finds it hardened") {
  if (run_shell("command -v systemd-analyze").status != 0) {
    MESSAGE("not tried: there is no systemd-analyze");
    return;
  }
  const std::string unit = prefix() + "/lib/systemd/system/fingerpostd@.service";
  const Ran verified = run_shell("systemd-analyze verify --man=no '" + unit + "' 2>&1");
  CHECK(verified.status == 0);
  // What it has to say of units that are not ours is not ours.
  CHECK_MESSAGE(verified.out.find("fingerpostd@") == std::string::npos, verified.out);
  const Ran judged =
      run_shell("systemd-analyze security --offline=true --threshold=30 '" + unit + "' 2>&1");
  CHECK_MESSAGE(judged.status == 0, judged.out);
}

TEST_CASE("the account is one that sysusers makes") {
  if (run_shell("command -v systemd-sysusers").status != 0) {
    MESSAGE("not tried: there is no systemd-sysusers");
    return;
  }
  const TempFolder root;
  const Ran made = run_shell("mkdir " + root.path() +
                             "/etc; systemd-sysusers --root=" + root.path() + " " + prefix() +
                             "/lib/sysusers.d/fingerpost.conf && grep -q "
                             "'^fingerpost:.*:/var/lib/fingerpost:' " +
                             root.path() + "/etc/passwd");
  CHECK_MESSAGE(made.status == 0, made.err);
}
