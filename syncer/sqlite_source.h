// A directory in an SQLite file. Reads only; works beside any writer, and never makes one wait in
// WAL mode.
//
// The file may be locked, replaced, restored or missing at any time. Before every read the files
// are looked at with stat (never opened: see sqlite_db.h): where one is not the one that the
// connection has, a new connection takes over, and the cursor decides whether it shows another
// history. So whatever went wrong, the next call after it was mended works.
//
// One thread. Errors: absent (no such file), not_permitted (the message names path and permission),
// refused (no directory of ours), unavailable (locked, unreadable for now), corrupt (SQLite says
// so).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "shm/file_identity.h"
#include "syncer/source.h"
#include "syncer/sqlite_db.h"
#include "syncer/sqlite_watch.h"

namespace fingerpost {

class SqliteSource final : public Source {
 public:
  explicit SqliteSource(std::string path);

  std::string_view kind() const override { return "sqlite"; }
  Result<DirectoryLayout> read_layout() override;
  Result<bool> may_have_changed() override;
  // A cursor of version 0 is before every history; replay_from 0 means that nothing is to be
  // replayed.
  Result<std::unique_ptr<Batch>> read_changes(const Cursor& from,
                                              std::uint64_t replay_from) override;
  Result<std::unique_ptr<FullRead>> read_all() override;
  int watch_fd() const override { return watch_.fd(); }
  void drain_watch() override { watch_.drain(); }

 private:
  // The file, its -wal and its -shm. While we are connected SQLite itself replaces and removes none
  // of them.
  struct Files {
    std::array<std::optional<FileIdentity>, 3> identities;
    bool operator==(const Files&) const = default;
  };

  Files look() const;
  // Connects if there is no connection, or if it is one to files that are not there any more.
  SqliteDb& connect();
  template <class Value, class Read>
  Result<Value> read(Read read);
  Status explained(const SqliteError& error) const;

  std::string path_;
  SqliteWatch watch_;
  std::unique_ptr<SqliteDb> db_;
  Files files_;
  std::optional<std::int64_t> seen_;  // data_version of db_ at the last successful read_changes
};

}  // namespace fingerpost
