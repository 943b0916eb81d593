#include "shm/segment_path.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/child_process.h"
#include "tests/other_user.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

// Three folders below one, of which only the last exists by itself.
struct Folders {
  TempFolder top;
  SegmentFolders folders{top.file("rundir"), top.file("packaged"), top.file("common")};
  Folders() { std::filesystem::create_directory(folders.common); }
};

void touch(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "x";
}

TEST_CASE("a reader finds a bare name in the first of the three folders that holds it") {
  const Folders at;
  touch(at.folders.common + "/fingerpost.orders");
  CHECK(*path_to_read("orders", 1, at.folders) == at.folders.common + "/fingerpost.orders");
  touch(at.folders.packaged + "/fingerpost.orders");
  CHECK(*path_to_read("orders", 1, at.folders) == at.folders.packaged + "/fingerpost.orders");
  touch(at.folders.configured + "/fingerpost.orders");
  CHECK(*path_to_read("orders", 1, at.folders) == at.folders.configured + "/fingerpost.orders");
}

TEST_CASE("a name that no folder holds is absent, and the message lists where it was looked for") {
  const Folders at;
  const auto path = path_to_read("orders", 1, at.folders);
  REQUIRE_FALSE(path.ok());
  CHECK(path.status().code() == Code::absent);
  for (const auto& folder : {at.folders.configured, at.folders.packaged, at.folders.common}) {
    CHECK(path.status().message().find(folder + "/fingerpost.orders") != std::string::npos);
  }
}

TEST_CASE("a folder that may not be searched ends the search instead of being passed over") {
  if (!can_switch_users()) return;
  const Folders at;
  std::filesystem::permissions(at.top.path(), std::filesystem::perms{0755});
  touch(at.folders.packaged + "/fingerpost.orders");
  touch(at.folders.common + "/fingerpost.orders");
  std::filesystem::permissions(at.folders.packaged, std::filesystem::perms{0700});
  CHECK(in_child([&]() -> std::string {
          become(kNobody);
          const auto path = path_to_read("orders", 1, at.folders);
          if (path.ok()) return "found " + *path;
          if (path.status().code() != Code::not_permitted) return path.status().message();
          return {};
        }) == "");
}

TEST_CASE("a writer takes the configured folder, else the packaged one, else the common one") {
  Folders at;
  CHECK(*path_to_write("orders", 1, at.folders) == at.folders.configured + "/fingerpost.orders");
  at.folders.configured.clear();
  CHECK(*path_to_write("orders", 1, at.folders) == at.folders.common + "/fingerpost.orders");
  std::filesystem::create_directory(at.folders.packaged);
  CHECK(*path_to_write("orders", 1, at.folders) == at.folders.packaged + "/fingerpost.orders");
}

TEST_CASE("FINGERPOST_RUNDIR is the configured folder, and must be absolute") {
  CHECK(in_child([]() -> std::string {
          ::setenv("FINGERPOST_RUNDIR", "/somewhere", 1);
          if (*path_to_write("a", 1) != "/somewhere/fingerpost.a") return "not taken";
          ::setenv("FINGERPOST_RUNDIR", "some/where", 1);
          if (path_to_write("a", 1).ok() || path_to_read("a", 1).ok()) return "relative accepted";
          ::unsetenv("FINGERPOST_RUNDIR");
          return SegmentFolders::of_this_process().configured;
        }) == "");
}

TEST_CASE(
    "what contains a slash is a path, made absolute so that a change of folder does not matter") {
  CHECK(*path_to_read("/a/b", 1) == "/a/b");
  CHECK(*path_to_write("/a/b.lock", 1) == "/a/b.lock");
  const auto relative = path_to_read("./b", 1);
  REQUIRE(relative.ok());
  CHECK(relative->front() == '/');
  CHECK_FALSE(path_to_read("/a/", 1).ok());
  CHECK_FALSE(path_to_read(std::string_view("/a\0b", 4), 1).ok());
}

TEST_CASE("the file name carries the layout from layout 2 on") {
  Folders at;
  at.folders.configured.clear();
  CHECK(*path_to_write("orders", 2, at.folders) == at.folders.common + "/fingerpost.orders.l2");
  CHECK(*path_to_write("/a/b", 12) == "/a/b.l12");
  CHECK(*path_to_write("/a/b.l12", 12) == "/a/b.l12");
  touch(at.folders.common + "/fingerpost.orders");
  CHECK(path_to_read("orders", 2, at.folders).status().code() == Code::absent);
}

TEST_CASE("a segment's name is 1 to 64 plain characters and never the name of a helper file") {
  const std::string longest(64, 'a');
  for (const std::string& good :
       {std::string("a"), std::string("Orders_2.eu-west"), longest, std::string("l2"),
        std::string("a.lx"), std::string("a.l"), std::string("a.lock2"), std::string("new")}) {
    CAPTURE(good);
    CHECK_FALSE(why_not_segment_name(good));
  }
  for (const std::string& bad :
       {std::string(), longest + "a", std::string(".a"), std::string(".."), std::string("a b"),
        std::string("a\n"), std::string("\xC3\xA4"), std::string("a.lock"), std::string("a.new"),
        std::string("a.l2"), std::string("a.l2.lock"), std::string(1, '\0')}) {
    CAPTURE(bad);
    CHECK(why_not_segment_name(bad));
    CHECK(path_to_read(bad, 1).status().code() == Code::refused);
    CHECK(path_to_write(bad, 1).status().code() == Code::refused);
  }
}

}  // namespace
}  // namespace fingerpost
