#include "shm/segment_open.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <functional>

#include "tests/child_process.h"
#include "tests/other_user.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

// A folder on tmpfs that everybody may search.
struct Place : TempFolder {
  Place() : TempFolder("/dev/shm") { ::chmod(path().c_str(), 0755); }
};

// What `user` gets for opening `path` to read, "ok" or the code, with the message behind it.
std::string outcome(const Result<OpenedSegment>& opened) {
  if (opened.ok()) return "ok";
  return std::string(to_string(opened.status().code())) + ": " + opened.status().message();
}

std::string read_as(uid_t user, const std::string& path, const TrustedOwners& trusted = {}) {
  return in_child([&]() -> std::string {
    if (user != ::geteuid()) become(user);
    return outcome(open_to_read(path, trusted));
  });
}

bool begins(const std::string& text, const std::string& with) {
  return text.starts_with(with);
}
bool mentions(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST_CASE("a reader opens a segment of its own, read-only and close-on-exec") {
  const Place place;
  const std::string path = place.file("s");
  make_file(path, ::geteuid(), ::getegid(), 0640);
  const auto opened = open_to_read(path, {});
  REQUIRE_MESSAGE(opened.ok(), outcome(opened));
  CHECK((::fcntl(opened->fd.get(), F_GETFL) & O_ACCMODE) == O_RDONLY);
  CHECK((::fcntl(opened->fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(opened->owner == ::geteuid());
  CHECK(name_state(path, opened->identity) == NameState::same);
}

TEST_CASE("a missing segment is absent and is not made") {
  const Place place;
  CHECK(begins(outcome(open_to_read(place.file("s"), {})), "absent"));
  CHECK(begins(outcome(open_to_read(place.file("no/s"), {})), "absent"));
  CHECK(std::filesystem::is_empty(place.path()));
}

TEST_CASE("a link, a fifo, a socket and a folder are refused at once, by readers and writers") {
  const Place place;
  make_file(place.file("real"), ::geteuid(), ::getegid(), 0640);
  REQUIRE(::symlink("real", place.file("link").c_str()) == 0);
  REQUIRE(::mkfifo(place.file("fifo").c_str(), 0600) == 0);
  REQUIRE(::mkdir(place.file("folder").c_str(), 0700) == 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  place.file("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  for (const std::string name : {"link", "fifo", "folder", "socket"}) {
    CAPTURE(name);
    CHECK(begins(outcome(open_to_read(place.file(name), {})), "refused"));
    CHECK(begins(outcome(open_to_read(place.file(name), {.any = true, .owner = {}})), "refused"));
    CHECK(begins(outcome(open_to_adopt(place.file(name), ::geteuid())), "refused"));
  }
  CHECK(mentions(outcome(open_to_read(place.file("link"), {})), "symbolic link"));
}

TEST_CASE("a segment that is not on tmpfs is refused, and the file system is named") {
  const std::string path = std::filesystem::current_path().string() + "/not-on-tmpfs";
  make_file(path, ::geteuid(), ::getegid(), 0640);
  const std::string met = outcome(open_to_read(path, {.any = true, .owner = {}}));
  ::unlink(path.c_str());
  CHECK(begins(met, "refused"));
  CHECK(mentions(met, path + " lies on "));
}

TEST_CASE("a reader believes root and its own account, and no stranger") {
  if (!can_switch_users()) return;
  const Place place;  // root's, where nobody else may write: so the folder's owner is root
  make_file(place.file("root"), 0, kStrangerGroup, 0640);
  make_file(place.file("own"), kNobody, kNobody, 0600);
  make_file(place.file("planted"), kStranger, kStrangerGroup, 0644);
  CHECK(read_as(kNobody, place.file("root")) == "ok");
  CHECK(read_as(kNobody, place.file("own")) == "ok");
  const std::string met = read_as(kNobody, place.file("planted"));
  CHECK(begins(met, "wrong owner"));
  CHECK(mentions(met, place.file("planted")));
  CHECK(mentions(met, "uid " + std::to_string(kStranger)));
  CHECK(begins(read_as(0, place.file("planted")), "wrong owner"));
}

TEST_CASE("a reader believes the configured owner, or anybody where that is said") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.file("s"), kStranger, kStrangerGroup, 0644);
  CHECK(read_as(kNobody, place.file("s"), {.any = false, .owner = kStranger}) == "ok");
  CHECK(begins(read_as(kNobody, place.file("s"), {.any = false, .owner = kStranger + 1}),
               "wrong owner"));
  CHECK(read_as(kNobody, place.file("s"), {.any = true, .owner = {}}) == "ok");
}

TEST_CASE("a reader believes the owner of the folder only where nobody else may write") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.file("s"), kStranger, kStrangerGroup, 0644);
  REQUIRE(::chown(place.path().c_str(), kStranger, kStrangerGroup) == 0);
  CHECK(read_as(kNobody, place.file("s")) == "ok");
  for (const mode_t mode : {0775U, 0757U, 01777U}) {
    CAPTURE(mode);
    REQUIRE(::chmod(place.path().c_str(), mode) == 0);
    CHECK(begins(read_as(kNobody, place.file("s")), "wrong owner"));
  }
}

TEST_CASE("a segment that others may write is not believed, whoever owns it") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.file("group"), 0, kStrangerGroup, 0664);
  make_file(place.file("others"), 0, kStrangerGroup, 0646);
  for (const std::string name : {"group", "others"}) {
    const std::string met = read_as(kNobody, place.file(name));
    CHECK(begins(met, "wrong owner"));
    CHECK(mentions(met, "mode 06"));
    CHECK(begins(outcome(open_to_adopt(place.file(name), 0)), "wrong owner"));
  }
}

TEST_CASE(
    "what the kernel refuses is not permitted, and the message names path, owner and reason") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.file("s"), kStranger, kStrangerGroup, 0600);
  const std::string met = read_as(kNobody, place.file("s"));
  CHECK(begins(met, "not permitted"));
  CHECK(mentions(met, place.file("s")));
  CHECK(mentions(met, "uid " + std::to_string(kStranger)));
  CHECK(mentions(met, "Permission denied"));
  REQUIRE(::chmod(place.path().c_str(), 0700) == 0);
  CHECK(begins(read_as(kNobody, place.file("s")), "not permitted"));
}

TEST_CASE("a stranger cannot open a published segment for writing") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.file("s"), kStranger, kStrangerGroup, 0644);
  CHECK(in_child([&]() -> std::string {
          become(kNobody);
          return outcome(open_to_adopt(place.file("s"), kStranger));
        }).starts_with("not permitted"));
}

TEST_CASE(
    "a reader attaches in a sticky folder under fs.protected_regular, as it never says O_CREAT") {
  if (!can_switch_users()) return;
  const Place place;
  REQUIRE(::chmod(place.path().c_str(), 01777) == 0);
  make_file(place.file("s"), 0, kStrangerGroup, 0644);
  CHECK(read_as(kNobody, place.file("s")) == "ok");
}

TEST_CASE("a writer adopts what is root's, its own or the configured owner's, never a look-alike") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.file("root"), 0, 0, 0640);
  make_file(place.file("owner"), kNobody, kNobody, 0640);
  make_file(place.file("planted"), kStranger, kStrangerGroup, 0640);
  CHECK(outcome(open_to_adopt(place.file("root"), kNobody)) == "ok");
  CHECK(outcome(open_to_adopt(place.file("owner"), kNobody)) == "ok");
  const std::string met = outcome(open_to_adopt(place.file("planted"), kNobody));
  CHECK(begins(met, "wrong owner"));
  CHECK(mentions(met, "uid " + std::to_string(kStranger)));
  CHECK(begins(outcome(open_to_adopt(place.file("none"), kNobody)), "absent"));
}

TEST_CASE("the trusted owner is a name, a uid or 'any', from the option or the environment") {
  CHECK(in_child([]() -> std::string {
          ::unsetenv("FINGERPOST_OWNER");
          const auto none = trusted_owners("");
          if (!none.ok() || none->any || none->owner) return "default";
          if (trusted_owners("root")->owner != 0U) return "name";
          if (trusted_owners("4711")->owner != 4711U) return "uid";
          if (!trusted_owners("any")->any) return "any";
          for (const char* bad : {"no-such-user-here", "4294967295", "4294967296", "-1", "1 "}) {
            if (trusted_owners(bad).ok()) return std::string("accepted ") + bad;
          }
          ::setenv("FINGERPOST_OWNER", "4712", 1);
          if (trusted_owners("")->owner != 4712U) return "environment";
          if (trusted_owners("4711")->owner != 4711U) return "the option goes before";
          return {};
        }) == "");
}

}  // namespace
}  // namespace fingerpost
