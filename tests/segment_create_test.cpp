#include "shm/segment_create.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "shm/segment_open.h"
#include "shm/segment_path.h"
#include "tests/child_process.h"
#include "tests/other_user.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

struct Place : TempFolder {
  Place() : TempFolder("/dev/shm") { ::chmod(path().c_str(), 0755); }
  std::string segment = file("s");
  std::string half_made = half_made_path(segment);
};

bool exists(const std::string& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

std::string outcome(const Status& status) {
  if (status.ok()) return "ok";
  return std::string(to_string(status.code())) + ": " + status.message();
}

HalfMadeSegment made(const Place& place) {
  auto segment = HalfMadeSegment::create(place.segment, SegmentAccess::of_this_process());
  REQUIRE_MESSAGE(segment.ok(), outcome(segment.status()));
  return *std::move(segment);
}

TEST_CASE("a segment has its name only once it is published, and keeps its file") {
  const Place place;
  HalfMadeSegment segment = made(place);
  CHECK_FALSE(exists(place.segment));
  CHECK(exists(place.half_made));
  REQUIRE(outcome(segment.publish_first()) == "ok");
  CHECK_FALSE(exists(place.half_made));
  CHECK(name_state(place.segment, segment.identity()) == NameState::same);
  CHECK((::fcntl(segment.fd(), F_GETFD) & FD_CLOEXEC) != 0);
  const UniqueFd kept = std::move(segment).take_fd();
  CHECK(*identity_of(kept.get(), place.segment) == segment.identity());
}

TEST_CASE("a half-made segment that is given up leaves nothing") {
  const Place place;
  { const HalfMadeSegment segment = made(place); }
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("what a dead writer left half-made is removed before anything new is made") {
  const Place place;
  CHECK(remove_half_made(place.segment).ok());
  CHECK(in_child([&]() -> std::string {
          auto left = HalfMadeSegment::create(place.segment, SegmentAccess::of_this_process());
          ::_exit(left.ok() ? 0 : 1);
        }) == "");
  CHECK(exists(place.half_made));
  HalfMadeSegment segment = made(place);
  CHECK(segment.publish_first().ok());
  CHECK_FALSE(exists(place.half_made));
}

TEST_CASE("owner, group and mode are exactly the configured ones under any umask") {
  const bool root = can_switch_users();
  for (const mode_t mask : {0U, 077U, 0777U}) {
    for (const mode_t mode : {0600U, 0640U, 0604U, 0644U}) {
      CAPTURE(mask);
      CAPTURE(mode);
      const Place place;
      SegmentAccess access = SegmentAccess::of_this_process();
      access.mode = mode;
      if (root) access = {kNobody, kStrangerGroup, mode};
      const mode_t before = ::umask(mask);
      auto segment = HalfMadeSegment::create(place.segment, access);
      ::umask(before);
      REQUIRE_MESSAGE(segment.ok(), outcome(segment.status()));
      REQUIRE(segment->publish_first().ok());
      struct stat info {};
      REQUIRE(::stat(place.segment.c_str(), &info) == 0);
      CHECK(info.st_uid == access.owner);
      CHECK(info.st_gid == access.group);
      CHECK((info.st_mode & 07777) == mode);
    }
  }
}

TEST_CASE("a worker in the configured group opens what a service under umask 077 made") {
  if (!can_switch_users()) return;
  const Place place;
  const mode_t before = ::umask(077);
  auto segment = HalfMadeSegment::create(place.segment, {0, kStrangerGroup, 0640});
  ::umask(before);
  REQUIRE(segment.ok());
  REQUIRE(segment->publish_first().ok());
  const auto open_with_group = [&](gid_t group) {
    return in_child([&] {
      become(kNobody, group);
      return outcome(open_to_read(place.segment, {}).status());
    });
  };
  CHECK(open_with_group(kStrangerGroup) == "ok");
  CHECK(open_with_group(kNobody).starts_with("not permitted"));
}

TEST_CASE("a mode that lets others write, or keeps the owner out, is refused and nothing is made") {
  const Place place;
  for (const mode_t mode : {0660U, 0646U, 0666U, 0440U, 0400U, 0700U, 04640U, 01640U, 0U}) {
    CAPTURE(mode);
    SegmentAccess access = SegmentAccess::of_this_process();
    access.mode = mode;
    CHECK(HalfMadeSegment::create(place.segment, access).status().code() == Code::refused);
  }
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("an account that the process cannot give away to is not permitted, and nothing stays") {
  if (!can_switch_users()) return;
  const Place place;
  REQUIRE(::chmod(place.path().c_str(), 01777) == 0);
  const std::string met = in_child([&] {
    become(kNobody);
    return outcome(
        HalfMadeSegment::create(place.segment, {kStranger, kStrangerGroup, 0640}).status());
  });
  CAPTURE(met);
  CHECK(met.starts_with("not permitted"));
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("an adopted segment gets the configured account and mode") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.segment, 0, 0, 0600);
  auto adopted = open_to_adopt(place.segment, kNobody);
  REQUIRE(adopted.ok());
  REQUIRE(apply_access(adopted->fd.get(), {kNobody, kStrangerGroup, 0644}, place.segment).ok());
  struct stat info {};
  REQUIRE(::stat(place.segment.c_str(), &info) == 0);
  CHECK(info.st_uid == kNobody);
  CHECK(info.st_gid == kStrangerGroup);
  CHECK((info.st_mode & 07777) == 0644);
}

TEST_CASE("the first segment never takes the place of a file that is there") {
  const Place place;
  make_file(place.segment, ::geteuid(), ::getegid(), 0600);
  const UniqueFd there(::open(place.segment.c_str(), O_RDONLY | O_CLOEXEC));
  const auto identity = identity_of(there.get(), place.segment);
  {
    HalfMadeSegment segment = made(place);
    const Status met = segment.publish_first();
    CHECK(met.code() == Code::conflict);
    CHECK(met.message().find(place.segment) != std::string::npos);
    CHECK(exists(place.half_made));
  }
  CHECK_FALSE(exists(place.half_made));
  CHECK(name_state(place.segment, *identity) == NameState::same);
}

TEST_CASE("of many that publish a first segment under one name at most one succeeds") {
  // Only the writer lock keeps two from sharing one half-made name; the rename must hold without
  // it.
  const Place place;
  for (int round = 0; round < 50; ++round) {
    ::unlink(place.segment.c_str());
    std::atomic<int> published = 0;
    std::atomic<int> conflicts = 0;
    std::thread threads[4];
    for (std::thread& thread : threads) {
      thread = std::thread([&] {
        auto segment = HalfMadeSegment::create(place.segment, SegmentAccess::of_this_process());
        if (!segment.ok()) return;
        const Status status = segment->publish_first();
        if (status.ok()) ++published;
        if (status.code() == Code::conflict) ++conflicts;
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(exists(place.segment));
    REQUIRE(published <= 1);
    REQUIRE(published + conflicts >= 1);
  }
}

TEST_CASE("a successor takes the name without a moment in which there is none") {
  const Place place;
  HalfMadeSegment first = made(place);
  REQUIRE(first.publish_first().ok());
  std::atomic<bool> stop = false;
  std::atomic<int> misses = 0;
  std::thread reader([&] {
    while (!stop) {
      if (!open_to_read(place.segment, {}).ok()) ++misses;
    }
  });
  for (int i = 0; i < 300; ++i) {
    HalfMadeSegment successor = made(place);
    REQUIRE(successor.publish_successor().ok());
    REQUIRE(name_state(place.segment, successor.identity()) == NameState::same);
  }
  stop = true;
  reader.join();
  CHECK(misses == 0);
  CHECK(name_state(place.segment, first.identity()) == NameState::replaced);
}

TEST_CASE("a successor also takes a name that vanished") {
  const Place place;
  HalfMadeSegment first = made(place);
  REQUIRE(first.publish_first().ok());
  REQUIRE(::unlink(place.segment.c_str()) == 0);
  CHECK(name_state(place.segment, first.identity()) == NameState::gone);
  HalfMadeSegment successor = made(place);
  CHECK(successor.publish_successor().ok());
}

TEST_CASE("a half-made file that was replaced is neither published nor removed") {
  const Place place;
  {
    HalfMadeSegment segment = made(place);
    REQUIRE(::unlink(place.half_made.c_str()) == 0);
    make_file(place.half_made, ::geteuid(), ::getegid(), 0600);
    CHECK(segment.publish_first().code() == Code::conflict);
    CHECK(segment.publish_successor().code() == Code::conflict);
  }
  CHECK(exists(place.half_made));
  CHECK_FALSE(exists(place.segment));
}

TEST_CASE("another account's half-made file in a sticky folder is named, with its owner") {
  if (!can_switch_users()) return;
  const Place place;
  REQUIRE(::chmod(place.path().c_str(), 01777) == 0);
  make_file(place.half_made, kStranger, kStrangerGroup, 0600);
  const std::string met = in_child([&] {
    become(kNobody);
    return outcome(
        HalfMadeSegment::create(place.segment, SegmentAccess::of_this_process()).status());
  });
  CHECK(met.starts_with("not permitted"));
  CHECK(met.find(place.half_made) != std::string::npos);
  CHECK(met.find("uid " + std::to_string(kStranger)) != std::string::npos);
}

TEST_CASE("a segment is made on tmpfs only, and in a folder that exists") {
  const std::string on_disk = std::filesystem::current_path().string() + "/s";
  const auto access = SegmentAccess::of_this_process();
  CHECK(HalfMadeSegment::create(on_disk, access).status().code() == Code::refused);
  CHECK_FALSE(exists(half_made_path(on_disk)));
  const Place place;
  CHECK(HalfMadeSegment::create(place.file("none/s"), access).status().code() == Code::absent);
}

}  // namespace
}  // namespace fingerpost
