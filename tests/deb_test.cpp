#include <doctest/doctest.h>

#include <filesystem>

#include "tests/installed_tree.h"

using namespace fingerpost;

TEST_CASE("the package installs, runs, compiles a worker, and removes cleanly") {
  if (run_shell("command -v dpkg-shlibdeps dpkg cpack systemd-sysusers").status != 0 ||
      ::geteuid() != 0) {
    MESSAGE("not tried: needs root, dpkg-dev, cpack and systemd-sysusers");
    return;
  }
  const TempFolder folder;
  const std::string root = folder.file("root");
  const Ran packed =
      run_shell("cd " FINGERPOST_BUILD " && cpack --config CPackConfig.cmake -G DEB -B " +
                folder.file("packed"));
  REQUIRE_MESSAGE(packed.status == 0, packed.out, packed.err);

  const Ran depends = run_shell("dpkg-deb -f " + folder.file("packed") + "/*.deb Depends");
  CHECK_MESSAGE(depends.out.find("libsqlite3-0") != std::string::npos, depends.out);
  CHECK_MESSAGE(depends.out.find("libc6") != std::string::npos, depends.out);

  // A package database of its own, in which nothing that it depends on is installed.
  const std::string dpkg = "dpkg --root=" + root + " --force-depends --force-script-chrootless ";
  const Ran installed =
      run_shell("mkdir -p " + root + "/etc " + root + "/var/lib/dpkg/updates " + root +
                "/var/lib/dpkg/info && touch " + root + "/var/lib/dpkg/status && " + dpkg + "-i " +
                folder.file("packed") + "/*.deb");
  REQUIRE_MESSAGE(installed.status == 0, installed.out, installed.err);
  CHECK(run_shell("grep -q '^fingerpost:' " + root + "/etc/passwd").status == 0);
  CHECK(run_shell("grep -q '^ExecStart=/usr/bin/fingerpostd ' " + root +
                  "/usr/lib/systemd/system/fingerpostd@.service")
            .status == 0);
  CHECK(run_program(root + "/usr/bin/fingerpost", {"--version"}).out == FINGERPOST_VERSION "\n");
  CHECK(run_program(root + "/usr/bin/fingerpostd", {"--help"}).status == 0);
  CHECK(run_shell("test -e " + root + "/usr/" FINGERPOST_LIBDIR "/libfingerpost.so.0 && test -e " +
                  root + "/usr/include/fingerpost.h")
            .status == 0);
  check_serves(
      root + "/usr/bin",
      {worker_by_find_package(root + "/usr", folder.path()),
       worker_by_pkg_config(root + "/usr/" FINGERPOST_LIBDIR "/pkgconfig", folder.path())});

  const Ran removed = run_shell(dpkg + "--purge fingerpost");
  REQUIRE_MESSAGE(removed.status == 0, removed.out, removed.err);
  CHECK(run_shell("find " + root + "/usr -name '*fingerpost*'").out.empty());
}
