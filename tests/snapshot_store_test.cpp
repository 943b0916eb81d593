#include "syncer/snapshot_store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/child_process.h"
#include "tests/snapshot_samples.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

const DirectoryId kOurs = sample_directory(1);

std::unique_ptr<SnapshotStore> store_in(const std::string& folder) {
  auto store = SnapshotStore::open(folder, "orders", {});
  REQUIRE(store.ok());
  return *std::move(store);
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename());
  }
  return names;
}

void flip_last_byte_of_block(const std::string& path) {
  std::string bytes = file_bytes(path);
  bytes[4'096 + 40] = static_cast<char>(bytes[4'096 + 40] ^ 1);
  write_file(path, bytes);
}

TEST_CASE("the last three snapshots are kept") {
  const TempFolder folder;
  auto store = store_in(folder.path());
  for (std::uint64_t version = 9; version <= 13; ++version) {
    REQUIRE(write_sample(*store, 100, version).ok());
    REQUIRE(store->retain(kOurs).ok());
  }
  CHECK(names_in(folder.path()) ==
        std::set<std::string>{"orders-1-11.fps", "orders-1-12.fps", "orders-1-13.fps"});
}

TEST_CASE("the newest is what its content says: incarnation first, whatever it is called") {
  const TempFolder folder;
  auto store = store_in(folder.path());
  REQUIRE(write_sample(*store, 10, 900, 1).ok());
  REQUIRE(write_sample(*store, 10, 8, 2).ok());
  REQUIRE(write_sample(*store, 10, 30, 2).ok());
  std::filesystem::rename(folder.file("orders-2-30.fps"), folder.file("orders-1-1.fps"));
  const auto found = store->candidates(kOurs);
  REQUIRE(found.ok());
  REQUIRE(found->good.size() == 3);
  CHECK(found->good[0].path == folder.file("orders-1-1.fps"));
  CHECK(found->good[1].path == folder.file("orders-2-8.fps"));
  CHECK(found->good[2].path == folder.file("orders-1-900.fps"));
  CHECK(found->faults.empty());
}

TEST_CASE("what cannot be verified is never removed, and does not push out what can") {
  const TempFolder folder;
  auto store = store_in(folder.path());
  for (std::uint64_t version = 1; version <= 3; ++version) {
    REQUIRE(write_sample(*store, 100, version).ok());
  }
  for (std::uint64_t version = 4; version <= 6; ++version) {
    const auto path = write_sample(*store, 100, version);
    REQUIRE(path.ok());
    if (version % 2 == 0) flip_last_byte_of_block(*path);
  }
  write_file(folder.file("orders-1-2.fps"), "no snapshot at all");
  REQUIRE(store->retain(kOurs).ok());
  CHECK(names_in(folder.path()).size() == 6);
  REQUIRE(write_sample(*store, 100, 7).ok());
  REQUIRE(store->retain(kOurs).ok());
  // Good ones are 7, 5 and 3; 1 is superfluous; 6, 4 and 2 are damaged.
  CHECK(names_in(folder.path()) == std::set<std::string>{"orders-1-2.fps", "orders-1-3.fps",
                                                         "orders-1-4.fps", "orders-1-5.fps",
                                                         "orders-1-6.fps", "orders-1-7.fps"});
  const auto found = store->candidates(kOurs);
  REQUIRE(found.ok());
  REQUIRE(found->faults.size() == 1);
  CHECK(found->faults[0].path == folder.file("orders-1-2.fps"));
  CHECK(found->faults[0].why.code() == Code::corrupt);
}

TEST_CASE("a damaged newest snapshot leaves the one before it to be loaded") {
  const TempFolder folder;
  auto store = store_in(folder.path());
  REQUIRE(write_sample(*store, 1'000, 1).ok());
  const auto newest = write_sample(*store, 1'000, 2);
  REQUIRE(newest.ok());
  flip_last_byte_of_block(*newest);
  const auto found = store->candidates(kOurs);
  REQUIRE(found.ok());
  std::vector<std::string> answers;
  for (const SnapshotInfo& info : found->good) {
    auto reader = store->read(info.path);
    REQUIRE(reader.ok());
    answers.push_back(compare_with_samples(**reader, 1'000));
  }
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].find("block 0 (at byte 4096) has digest") != std::string::npos);
  CHECK(answers[1] == "");
}

TEST_CASE("a snapshot of another directory is refused by its id, and not touched") {
  const TempFolder folder;
  auto store = store_in(folder.path());
  const auto foreign = write_sample(*store, 10, 99, 9, sample_directory(2));
  REQUIRE(foreign.ok());
  for (std::uint64_t version = 1; version <= 5; ++version) {
    REQUIRE(write_sample(*store, 10, version).ok());
    REQUIRE(store->retain(kOurs).ok());
  }
  const auto found = store->candidates(kOurs);
  REQUIRE(found.ok());
  CHECK(found->good.size() == 3);
  REQUIRE(found->faults.size() == 1);
  CHECK(found->faults[0].path == *foreign);
  CHECK(found->faults[0].why.code() == Code::other_directory);
  CHECK(found->faults[0].why.message().find(to_string(sample_directory(2))) != std::string::npos);
}

TEST_CASE("directories with similar names share a folder and not their files") {
  const TempFolder folder;
  auto store = store_in(folder.path());
  auto other = SnapshotStore::open(folder.path(), "orders-5", {});
  REQUIRE(other.ok());
  REQUIRE(write_sample(*store, 10, 7, 5).ok());
  REQUIRE(write_sample(**other, 10, 8, 6).ok());
  write_file(folder.file("orders-5-x.fps"), "");
  write_file(folder.file("orders-5-7.fps.bak"), "");
  CHECK(store->candidates(kOurs)->good.size() == 1);
  CHECK(store->candidates(kOurs)->faults.empty());
  CHECK((*other)->candidates(kOurs)->good.size() == 1);
}

TEST_CASE("what a killed writer left is removed at the next start") {
  const TempFolder folder;
  write_file(folder.file("orders.fps.new"), "half of it");
  write_file(folder.file("billing.fps.new"), "somebody else's");
  auto store = store_in(folder.path());
  CHECK(names_in(folder.path()) == std::set<std::string>{"billing.fps.new"});
}

TEST_CASE("a folder is made where it lacks; a path that is none is an error that names it") {
  const TempFolder folder;
  CHECK(SnapshotStore::open(folder.file("state"), "orders", {}).ok());
  CHECK(std::filesystem::is_directory(folder.file("state")));
  const auto store = SnapshotStore::open(folder.file("a/b"), "orders", {});
  REQUIRE_FALSE(store.ok());
  CHECK(store.status().code() == Code::absent);
  CHECK(store.status().message().find(folder.file("a/b")) != std::string::npos);
}

TEST_CASE("a full disk leaves old snapshots as they are, and the next attempt works") {
  const TempFolder folder;
  const std::string complaint = in_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("full", folder.path().c_str(), "tmpfs", 0, "size=12m") != 0) {
      return "skip";
    }
    for (const IoChoice choice : {IoChoice::automatic, IoChoice::plain}) {
      auto store = SnapshotStore::open(folder.path(), "orders", {choice, 4});
      const auto old = write_sample(**store, 1'000, 1);
      if (!old) return old.status().message();
      const std::string old_bytes = file_bytes(*old);
      write_file(folder.file("ballast"), std::string(9 << 20, 'x'));
      for (int attempt = 0; attempt < 3; ++attempt) {
        const auto failed = write_sample(**store, 200'000, 2);
        if (failed) return "a snapshot larger than the disk";
        if (failed.status().code() != Code::no_space) return failed.status().message();
        if (names_in(folder.path()) != std::set<std::string>{"ballast", "orders-1-1.fps"}) {
          return "something was left behind or is gone";
        }
        if (file_bytes(*old) != old_bytes) return "the old snapshot changed";
      }
      std::filesystem::remove(folder.file("ballast"));
      const auto written = write_sample(**store, 200'000, 2);
      if (!written) return written.status().message();
      if (!verify_snapshot(*written, {}).ok()) return "the new one is bad";
      std::filesystem::remove(*written);
    }
    return "";
  });
  if (complaint == "skip") {
    MESSAGE("no mount here: not tried");
  } else {
    CHECK(complaint == "");
  }
}

}  // namespace
}  // namespace fingerpost
