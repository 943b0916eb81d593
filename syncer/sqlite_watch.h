// Says when an SQLite file may have changed: a hint that comes early and may come for nothing.
//
// inotify tells of writes to the file and its -wal, and of files that come and go in their folder.
// But SQLite writes a commit's last frame first, syncs it, and makes it visible in shared memory at
// last, which no event tells of. So every event is echoed, at growing intervals: what a slow sync
// delays is noticed about as long after its commit as that sync took.
//
// Nothing is ever opened: closing a descriptor of the file would drop the locks that SQLite holds
// on it. One thread. Where inotify is refused, fd() is -1 and only polling is left.
#pragma once

#include <string>

#include "shm/unique_fd.h"

namespace fingerpost {

class SqliteWatch {
 public:
  explicit SqliteWatch(std::string path);

  // Readable when something may have changed.
  int fd() const { return epoll_.get(); }
  // Empties it, and sees to it that it will be heard again.
  void drain();

 private:
  void watch_files();
  bool take_events();
  void echo_in(int interval);

  std::string path_;
  std::string folder_;
  UniqueFd inotify_;
  UniqueFd timer_;
  UniqueFd epoll_;
  int folder_watch_ = -1;
  int echo_ = 0;  // the next interval
};

}  // namespace fingerpost
