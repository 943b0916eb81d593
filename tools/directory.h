// An open directory, and one change of it by a verb. What the verbs share; each family of verbs is
// a file of its own beside this one (directory_init, directory_shards, directory_buckets,
// directory_tenants, directory_splits, directory_pins, directory_moves, directory_removals,
// directory_history, directory_import).
//
// Not thread-safe. What the input or the stored rows do not allow comes back as a Status (refused,
// conflict); what SQLite cannot do is thrown as SqliteError.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shm/status.h"
#include "syncer/batch.h"
#include "syncer/sqlite_db.h"

namespace fingerpost {

class Directory {
 public:
  // Refused if `url` is not understood or the file is no directory of ours.
  static Result<std::unique_ptr<Directory>> open(std::string_view url);

  SqliteDb& db() noexcept { return db_; }
  const DirectoryLayout& layout() const noexcept { return layout_; }

  // The position now; of this change, if asked inside one.
  std::uint64_t version();

  // What answers for a tenant that has no entry of its own: "bucket:N", or empty if nothing but a
  // hash rule can.
  std::string bucket_of(std::string_view tenant) const;

 private:
  explicit Directory(std::string path) : db_(std::move(path), SqliteDb::Mode::read_write) {}

  SqliteDb db_;
  DirectoryLayout layout_;
};

// One verb's transaction: holds the write lock from construction on, names the verb to the
// triggers, and is rolled back unless committed.
class DirectoryChange {
 public:
  // `verb`: as typed, "tenant create". `note`: what history shall remember besides. `who`: empty
  // for this_user().
  DirectoryChange(Directory& directory, std::string_view verb, std::string_view note = {},
                  std::string_view who = {});

  // The version that readers must have reached to see this change; if nothing changed, the one
  // before.
  std::uint64_t commit();

  // The directory's, when the change began.
  std::uint64_t version_before() const noexcept { return version_before_; }

 private:
  Directory& directory_;
  SqliteTransaction transaction_;
  std::uint64_t version_before_;
};

// "user@host" of this process, for history.
std::string this_user();

// ["A","B"] as the schema stores it, and back; nullopt unless it is an array of strings.
std::string to_json_list(const std::vector<std::string>& list);
std::optional<std::vector<std::string>> from_json_list(std::string_view json);

}  // namespace fingerpost
