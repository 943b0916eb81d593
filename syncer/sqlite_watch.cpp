#include "syncer/sqlite_watch.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace fingerpost {
namespace {

// Together half a second; after that the poll is near.
constexpr std::array kEchoesMs{1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr std::int64_t kNsPerMs = 1'000'000;

bool add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

SqliteWatch::SqliteWatch(std::string path) {
  // SQLite keeps the log beside the file that a symbolic link leads to.
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  path_ = error ? std::move(path) : real.native();
  folder_ = std::filesystem::path(path_).parent_path().native();
  if (folder_.empty()) folder_ = ".";
  inotify_ = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (inotify_ && timer_ && epoll && add(epoll.get(), inotify_.get()) &&
      add(epoll.get(), timer_.get())) {
    epoll_ = std::move(epoll);
    watch_files();
  }
}

void SqliteWatch::watch_files() {
  // Adding the same inode again changes nothing, so what was replaced is found and the rest kept.
  ::inotify_add_watch(inotify_.get(), path_.c_str(), IN_MODIFY);
  ::inotify_add_watch(inotify_.get(), (path_ + "-wal").c_str(), IN_MODIFY);
  folder_watch_ = ::inotify_add_watch(inotify_.get(), folder_.c_str(),
                                      IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE);
}

bool SqliteWatch::take_events() {
  const std::string file = std::filesystem::path(path_).filename().native();
  bool ours = false;
  alignas(inotify_event) std::array<char, 16'384> bytes;
  for (ssize_t size = 0; (size = ::read(inotify_.get(), bytes.data(), bytes.size())) > 0;) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      inotify_event event;
      std::memcpy(&event, bytes.data() + at, sizeof event);
      // Others' files come and go in the same folder; "" stands for an overflow and for the folder
      // itself.
      const std::string_view name =
          event.len > 0 ? std::string_view(bytes.data() + at + sizeof event) : std::string_view();
      ours = ours || event.wd != folder_watch_ || name.empty() || name == file ||
             name == file + "-wal";
      at += sizeof event + event.len;
    }
  }
  return ours;
}

void SqliteWatch::echo_in(int interval) {
  echo_ = interval;
  itimerspec in{};  // all zero: never
  if (static_cast<std::size_t>(interval) < kEchoesMs.size()) {
    in.it_value.tv_nsec = kEchoesMs[static_cast<std::size_t>(interval)] * kNsPerMs;
  }
  ::timerfd_settime(timer_.get(), 0, &in, nullptr);
}

void SqliteWatch::drain() {
  if (!epoll_) return;
  std::uint64_t expirations = 0;
  const bool echoed = ::read(timer_.get(), &expirations, sizeof expirations) > 0;
  if (take_events()) {
    watch_files();
    echo_in(0);
  } else if (echoed) {
    echo_in(echo_ + 1);
  }
}

}  // namespace fingerpost
