#include "shm/cgroup_limits.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

// A machine's /proc and control groups as files below a folder.
struct Machine : TempFolder {
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(file(path)).parent_path());
    std::ofstream(file(path)) << text;
  }
};

std::vector<std::string> folders_of(const CgroupMembership& membership,
                                    const std::vector<CgroupMount>& mounts) {
  std::vector<std::string> folders;
  for (const auto& folder : cgroup_folders(membership, mounts)) folders.push_back(folder.folder);
  return folders;
}

using Folders = std::vector<std::string>;

TEST_CASE("membership is read for both versions, also where the path holds colons") {
  const auto hybrid = parse_cgroup_membership(
      "9:name=systemd:/\n4:cpu,memory:/a/b:c\n3:memoryless:/wrong\n0::/v2\n");
  CHECK(hybrid.v1 == "/a/b:c");
  CHECK(hybrid.v2 == "/v2");
  const auto pure = parse_cgroup_membership("0::/user.slice\n");
  CHECK_FALSE(pure.v1);
  CHECK(pure.v2 == "/user.slice");
}

TEST_CASE("membership text that makes no sense is no membership") {
  for (const char* text : {"", "\n\n", "0", "0:", "garbage", "4:memory", ":::"}) {
    CAPTURE(text);
    const auto membership = parse_cgroup_membership(text);
    CHECK_FALSE(membership.v1);
    CHECK_FALSE(membership.v2);
  }
}

TEST_CASE("mounts are read with their top group, optional tags and escapes") {
  const auto mounts = parse_cgroup_mounts(
      "31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
      "34 30 0:31 /docker/1 /sys/fs/cgroup/memory rw shared:7 master:2 - cgroup cgroup rw,memory\n"
      "40 30 0:37 / /odd\\040place/\\134x rw - cgroup2 cgroup2 rw\n"
      "41 30 0:38 / /half - cgroup2\n"
      "42 1 8:1 / / rw - ext4 /dev/sda rw,memory\n");
  REQUIRE(mounts.size() == 2);
  CHECK(mounts[0].version == 1);
  CHECK(mounts[0].group == "/docker/1");
  CHECK(mounts[0].folder == "/sys/fs/cgroup/memory");
  CHECK(mounts[1].version == 2);
  CHECK(mounts[1].folder == "/odd place/\\x");
}

TEST_CASE("every ancestor up to the top of the mount is a folder to read") {
  CHECK(
      folders_of({{}, "/a/b/c"}, {{2, "/", "/sys/fs/cgroup"}}) ==
      Folders{"/sys/fs/cgroup/a/b/c", "/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"});
  CHECK(folders_of({"/m", "/u"}, {{1, "/", "/cg/memory"}, {2, "/", "/cg/unified"}}) ==
        Folders{"/cg/memory/m", "/cg/memory", "/cg/unified/u", "/cg/unified"});
}

TEST_CASE("where a container sees a part of the hierarchy its top is where the mount begins") {
  const std::vector<CgroupMount> mounts = {{1, "/docker/1", "/cg/memory"}};
  CHECK(folders_of({"/docker/1", {}}, mounts) == Folders{"/cg/memory"});
  CHECK(folders_of({"/docker/1/sub", {}}, mounts) == Folders{"/cg/memory/sub", "/cg/memory"});
  CHECK(folders_of({"/docker/12", {}}, mounts) == Folders{"/cg/memory"});
  CHECK(folders_of({{}, "/../other"}, {{2, "/", "/cg"}}) == Folders{"/cg"});
  CHECK(folders_of({{}, "/"}, {{2, "/", "/cg"}}) == Folders{"/cg"});
  CHECK(folders_of({{}, "/a"}, {}).empty());
}

TEST_CASE(
    "version 2: what is available is max less usage, with inactive file cache counted as free") {
  const Machine machine;
  machine.write("cg/memory.max", "1000000\n");
  machine.write("cg/memory.high", "max\n");
  machine.write("cg/memory.current", "600000\n");
  machine.write("cg/memory.stat", "anon 5\nfile 300000\nshmem 250000\ninactive_file 50000\n");
  const auto limits = read_cgroup_limits(machine.path(), {2, "/cg"});
  REQUIRE(limits.size() == 1);
  CHECK(limits[0].name == "memory.max of /cg");
  CHECK(limits[0].limit == 1'000'000);
  CHECK(limits[0].available == 450'000);
}

TEST_CASE("version 2: memory.high limits as well") {
  const Machine machine;
  machine.write("cg/memory.max", "max\n");
  machine.write("cg/memory.high", "700000\n");
  machine.write("cg/memory.current", "600000\n");
  const auto limits = read_cgroup_limits(machine.path(), {2, "/cg"});
  REQUIRE(limits.size() == 1);
  CHECK(limits[0].name == "memory.high of /cg");
  CHECK(limits[0].available == 100'000);
}

TEST_CASE("version 1: the limit, the limit with swap, and the least of hidden ancestors") {
  const Machine machine;
  machine.write("cg/memory.limit_in_bytes", "1000000\n");
  machine.write("cg/memory.usage_in_bytes", "600000\n");
  machine.write("cg/memory.memsw.limit_in_bytes", "1100000\n");
  machine.write("cg/memory.memsw.usage_in_bytes", "900000\n");
  machine.write("cg/memory.stat",
                "inactive_file 1\ntotal_inactive_file 40000\nhierarchical_memory_limit 800000\n");
  const auto limits = read_cgroup_limits(machine.path(), {1, "/cg"});
  REQUIRE(limits.size() == 3);
  CHECK(limits[0].available == 440'000);
  CHECK(limits[1].name == "memory.memsw.limit_in_bytes of /cg");
  CHECK(limits[1].available == 240'000);
  CHECK(limits[2].name == "hierarchical_memory_limit of /cg");
  CHECK(limits[2].available == 240'000);
}

TEST_CASE("version 1: a number that no machine has is no limit") {
  const Machine machine;
  machine.write("cg/memory.limit_in_bytes", "9223372036854771712\n");
  machine.write("cg/memory.usage_in_bytes", "600000\n");
  machine.write("cg/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
  CHECK(read_cgroup_limits(machine.path(), {1, "/cg"}).empty());
}

TEST_CASE("usage beyond the limit leaves nothing, and more cache than usage does not wrap") {
  const Machine machine;
  machine.write("over/memory.max", "1000\n");
  machine.write("over/memory.current", "2000\n");
  CHECK(read_cgroup_limits(machine.path(), {2, "/over"})[0].available == 0);
  machine.write("cache/memory.max", "1000\n");
  machine.write("cache/memory.current", "500\n");
  machine.write("cache/memory.stat", "inactive_file 900\n");
  CHECK(read_cgroup_limits(machine.path(), {2, "/cache"})[0].available == 1000);
}

TEST_CASE("files that are missing or make no sense set no limit") {
  const Machine machine;
  machine.write("cg/memory.max", "lots\n");
  machine.write("cg/memory.current", "\n");
  CHECK(read_cgroup_limits(machine.path(), {2, "/cg"}).empty());
  CHECK(read_cgroup_limits(machine.path(), {2, "/none"}).empty());
  CHECK(own_cgroup_folders(machine.path()).empty());
}

TEST_CASE("this process's own groups are folders that exist") {
  for (const CgroupFolder& group : own_cgroup_folders("")) {
    CAPTURE(group.folder);
    CHECK(std::filesystem::is_directory(group.folder));
  }
}

}  // namespace
}  // namespace fingerpost
