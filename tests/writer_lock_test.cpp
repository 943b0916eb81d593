#include "shm/writer_lock.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <optional>

#include "shm/segment_path.h"
#include "tests/child_process.h"
#include "tests/other_user.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

// A segment's place on tmpfs, where everybody may search.
struct Place : TempFolder {
  Place() : TempFolder("/dev/shm") { ::chmod(path().c_str(), 0755); }
  std::string segment = file("s");
  std::string lock = lock_path(segment);
};

std::string outcome(const Status& status) {
  if (status.ok()) return "ok";
  return std::string(to_string(status.code())) + ": " + status.message();
}

std::string acquire_in_child(const std::string& segment, uid_t owner = ::geteuid()) {
  return in_child([&] { return outcome(WriterLock::acquire(segment, owner).status()); });
}

// A process that takes something with `take` and keeps it until it is killed.
class Holder {
 public:
  template <class Take>
  explicit Holder(Take take) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      const auto taken = take();
      const char ok = taken.has_value() ? 'y' : 'n';
      if (::write(ends[1], &ok, 1) == 1) ::pause();
      ::_exit(1);
    }
    ::close(ends[1]);
    char ok = 0;
    REQUIRE(::read(ends[0], &ok, 1) == 1);
    ::close(ends[0]);
    REQUIRE(ok == 'y');
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
};

std::optional<WriterLock> held_writer_lock(const std::string& segment) {
  auto lock = WriterLock::acquire(segment, ::geteuid());
  if (!lock.ok()) return std::nullopt;
  return *std::move(lock);
}

// An open file with a lock of `type` on it, as a worker or a writer would hold it.
std::optional<UniqueFd> held_segment(const std::string& path, int access, short type) {
  UniqueFd fd(::open(path.c_str(), access | O_CLOEXEC));
  struct flock lock {};
  lock.l_type = type;
  if (!fd || ::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) return std::nullopt;
  return fd;
}

TEST_CASE("the first writer gets the lock, and another one is told which lock is held") {
  const Place place;
  const auto lock = WriterLock::acquire(place.segment, ::geteuid());
  REQUIRE_MESSAGE(lock.ok(), outcome(lock.status()));
  const std::string met = acquire_in_child(place.segment);
  CHECK(met.starts_with("busy"));
  CHECK(met.find(place.lock) != std::string::npos);
  CHECK(WriterLock::acquire(place.segment, ::geteuid()).status().code() == Code::busy);
}

TEST_CASE("the lock file has mode 0600 under any umask, and stays when the lock ends") {
  for (const mode_t mask : {0U, 077U, 0777U}) {
    CAPTURE(mask);
    const Place place;
    const mode_t before = ::umask(mask);
    const bool got = WriterLock::acquire(place.segment, ::geteuid()).ok();
    ::umask(before);
    REQUIRE(got);
    struct stat info {};
    REQUIRE(::stat(place.lock.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0600);
    CHECK(acquire_in_child(place.segment) == "ok");
  }
}

TEST_CASE("SIGKILL of the holder frees the lock at once, and nothing is removed by hand") {
  const Place place;
  for (int round = 0; round < 20; ++round) {
    Holder holder([&] { return held_writer_lock(place.segment); });
    CHECK(WriterLock::acquire(place.segment, ::geteuid()).status().code() == Code::busy);
    holder.kill();
    CHECK(outcome(WriterLock::acquire(place.segment, ::geteuid()).status()) == "ok");
  }
}

TEST_CASE("a program that the writer started does not keep its lock") {
  const Place place;
  std::optional<WriterLock> lock = held_writer_lock(place.segment);
  REQUIRE(lock);
  const pid_t hook = ::fork();
  if (hook == 0) {
    ::execl("/bin/sleep", "sleep", "30", nullptr);
    ::_exit(1);
  }
  // The child shares the lock until exec closes its copy.
  lock.reset();
  std::string met = "busy";
  for (int tries = 0; tries < 1000 && met.starts_with("busy"); ++tries) {
    met = outcome(WriterLock::acquire(place.segment, ::geteuid()).status());
    ::usleep(1000);
  }
  CHECK(::kill(hook, 0) == 0);
  ::kill(hook, SIGKILL);
  ::waitpid(hook, nullptr, 0);
  CHECK(met == "ok");
}

TEST_CASE("a writer whose lock file vanished takes the name again") {
  const Place place;
  auto lock = WriterLock::acquire(place.segment, ::geteuid());
  REQUIRE(lock.ok());
  CHECK(lock->hold().ok());
  REQUIRE(::unlink(place.lock.c_str()) == 0);
  CHECK(outcome(lock->hold()) == "ok");
  CHECK(acquire_in_child(place.segment).starts_with("busy"));
}

TEST_CASE("a writer whose lock file was replaced by another writer's is told to stop") {
  const Place place;
  auto lock = WriterLock::acquire(place.segment, ::geteuid());
  REQUIRE(lock.ok());
  REQUIRE(::unlink(place.lock.c_str()) == 0);
  Holder other([&] { return held_writer_lock(place.segment); });
  CHECK(lock->hold().code() == Code::busy);
  other.kill();
  CHECK(outcome(lock->hold()) == "ok");
}

TEST_CASE("a lock that cannot be renewed is kept, and renewed when that is possible again") {
  const Place place;
  auto lock = WriterLock::acquire(place.segment, ::geteuid());
  REQUIRE(lock.ok());
  REQUIRE(::unlink(place.lock.c_str()) == 0);
  REQUIRE(::mkdir(place.lock.c_str(), 0700) == 0);
  CHECK(lock->hold().code() == Code::refused);
  REQUIRE(::rmdir(place.lock.c_str()) == 0);
  CHECK(outcome(lock->hold()) == "ok");
}

TEST_CASE("a planted lock file is not trusted: its owner could hold it for ever") {
  if (!can_switch_users()) return;
  const Place place;
  make_file(place.lock, kStranger, kStrangerGroup, 0666);
  const std::string met = acquire_in_child(place.segment, kNobody);
  CHECK(met.starts_with("wrong owner"));
  CHECK(met.find("uid " + std::to_string(kStranger)) != std::string::npos);
  CHECK(in_child([&] {
          become(kNobody);
          return outcome(WriterLock::acquire(place.segment, kNobody).status());
        }).starts_with("wrong owner"));
}

TEST_CASE("a lock file of another account's run is named with its owner") {
  if (!can_switch_users()) return;
  const Place place;
  REQUIRE(::chmod(place.path().c_str(), 01777) == 0);
  make_file(place.lock, 0, 0, 0600);
  const std::string met = in_child([&] {
    become(kNobody);
    return outcome(WriterLock::acquire(place.segment, kNobody).status());
  });
  CHECK(met.starts_with("not permitted"));
  CHECK(met.find("root (uid 0), mode 0600") != std::string::npos);
}

TEST_CASE("root takes the lock file that the configured owner left in a sticky folder") {
  if (!can_switch_users()) return;
  const Place place;
  REQUIRE(::chmod(place.path().c_str(), 01777) == 0);
  make_file(place.lock, kNobody, kNobody, 0640);
  CHECK(acquire_in_child(place.segment, kNobody) == "ok");
  struct stat info {};
  REQUIRE(::stat(place.lock.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
}

TEST_CASE("a link, a fifo or a folder in the lock's place is refused; a missing folder is absent") {
  const Place place;
  REQUIRE(::symlink("elsewhere", place.lock.c_str()) == 0);
  CHECK(acquire_in_child(place.segment).starts_with("refused"));
  REQUIRE(::unlink(place.lock.c_str()) == 0);
  REQUIRE(::mkfifo(place.lock.c_str(), 0600) == 0);
  CHECK(acquire_in_child(place.segment).starts_with("refused"));
  REQUIRE(::unlink(place.lock.c_str()) == 0);
  REQUIRE(::mkdir(place.lock.c_str(), 0700) == 0);
  CHECK(acquire_in_child(place.segment).starts_with("refused"));
  CHECK(acquire_in_child(place.file("none/s")).starts_with("absent"));
}

TEST_CASE("a segment that another writer holds is busy, also when the lock file says nothing") {
  const Place place;
  make_file(place.segment, ::geteuid(), ::getegid(), 0640);
  Holder writer([&] { return held_segment(place.segment, O_RDWR, F_WRLCK); });
  const UniqueFd fd(::open(place.segment.c_str(), O_RDWR | O_CLOEXEC));
  const auto met = lock_segment(fd.get(), place.segment);
  CHECK(met.status().code() == Code::busy);
  CHECK(met.status().message().find(place.segment) != std::string::npos);
  writer.kill();
  CHECK(*lock_segment(fd.get(), place.segment) == SegmentLock::held);
  CHECK(*lock_segment(fd.get(), place.segment) == SegmentLock::held);
}

TEST_CASE("a reader's lock does not stop the writer, which gets its own once the reader lets go") {
  const Place place;
  make_file(place.segment, ::geteuid(), ::getegid(), 0640);
  Holder reader([&] { return held_segment(place.segment, O_RDONLY, F_RDLCK); });
  const UniqueFd fd(::open(place.segment.c_str(), O_RDWR | O_CLOEXEC));
  const auto met = lock_segment(fd.get(), place.segment);
  REQUIRE_MESSAGE(met.ok(), outcome(met.status()));
  CHECK(*met == SegmentLock::reader_in_the_way);
  reader.kill();
  CHECK(*lock_segment(fd.get(), place.segment) == SegmentLock::held);
}

TEST_CASE("a worker, who can only read, cannot take a writer's lock") {
  const Place place;
  make_file(place.segment, ::geteuid(), ::getegid(), 0640);
  CHECK_FALSE(held_segment(place.segment, O_RDONLY, F_WRLCK));
}

}  // namespace
}  // namespace fingerpost
