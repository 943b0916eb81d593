#include "tools/directory_init.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "shm/account.h"
#include "shm/number_text.h"
#include "syncer/sqlite_db.h"
#include "tools/directory.h"
#include "tools/directory_shards.h"
#include "tools/schema.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

DirectoryId random_uuid() {
  DirectoryId id{};
  // A request of up to 256 bytes is never answered in part.
  if (getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    throw SqliteError(Status::from_errno(errno, "getrandom"));
  }
  id[6] = static_cast<std::uint8_t>((id[6] & 0x0F) | 0x40);  // RFC 4122: version 4, random
  id[8] = static_cast<std::uint8_t>((id[8] & 0x3F) | 0x80);
  return id;
}

Status prepare_group_folder(const std::string& folder, gid_t group, const std::string& group_name) {
  constexpr mode_t kMode = S_ISGID | S_IRWXU | S_IRWXG;
  if (mkdir(folder.c_str(), 0700) == 0) {
    if (chown(folder.c_str(), static_cast<uid_t>(-1), group) != 0 ||
        chmod(folder.c_str(), kMode) != 0) {
      return Status::from_errno(errno, "give " + folder + " to group " + group_name);
    }
    return {};
  }
  if (errno != EEXIST) return Status::from_errno(errno, "make the folder " + folder);
  struct stat found {};
  if (stat(folder.c_str(), &found) != 0) return Status::from_errno(errno, folder);
  const bool shared =
      found.st_gid == group && (found.st_mode & (S_ISGID | S_IRWXG)) == (S_ISGID | S_IRWXG);
  if (shared) return {};
  return {Code::refused,
          fmt::format(
              "{0}: readers of the group need a folder of their own, of group {1}, group-writable "
              "and setgid: install -d -m 2770 -g {1} {0}",
              folder, group_name)};
}

// Makes the empty file before SQLite first opens it; afterwards nobody but SQLite may.
Status prepare_group_file(const std::string& path, const std::string& group_name) {
  errno = 0;
  const group* found = getgrnam(group_name.c_str());
  if (found == nullptr) return {Code::refused, "there is no group " + in_quotes(group_name)};
  const gid_t gid = found->gr_gid;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (Status status = prepare_group_folder(parent.empty() ? "." : parent.string(), gid, group_name);
      !status.ok()) {
    return status;
  }
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Status::from_errno(errno, "make " + path);
  Status status;
  struct stat made {};
  if (fstat(fd, &made) != 0) {
    status = Status::from_errno(errno, path);
  } else if (made.st_size != 0) {
    status = {Code::conflict, path + ": exists already; --group is for a new file"};
  } else if (fchown(fd, static_cast<uid_t>(-1), gid) != 0 || fchmod(fd, 0660) != 0) {
    status = Status::from_errno(errno, "give " + path + " to group " + group_name);
  }
  close(fd);
  return status;
}

// SQLite says of both that it cannot open the file.
Status check_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  struct stat found {};
  if (stat(path.c_str(), &found) == 0) return {};
  if (stat(folder.c_str(), &found) != 0) {
    return errno == ENOENT ? Status{Code::absent, path + ": there is no folder " + folder}
                           : Status::from_errno(errno, folder);
  }
  if (!S_ISDIR(found.st_mode)) return {Code::refused, path + ": " + folder + " is no folder"};
  if (faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return {
        Status::from_errno(errno, folder).code(),
        fmt::format("{}: the folder {} (owned by {}, mode {}) is not writable for {}", path, folder,
                    user_text(found.st_uid), mode_text(found.st_mode), user_text(geteuid()))};
  }
  return {};
}

}  // namespace

std::string_view name_of(Fallback fallback) {
  switch (fallback) {
    case Fallback::none:
      return "none";
    case Fallback::buckets:
      return "buckets";
    case Fallback::hash:
      return "hash";
  }
  return "none";
}

Status check_init_options(const InitOptions& options) {
  if (options.fallback == Fallback::buckets &&
      (options.buckets == 0 || options.buckets > kBucketsMax)) {
    return {Code::refused,
            fmt::format("--fallback buckets needs --buckets N, N from 1 to {}", kBucketsMax)};
  }
  if (options.fallback != Fallback::buckets && options.buckets != 0) {
    return {Code::refused, "--buckets goes with --fallback buckets only"};
  }
  if (options.fallback == Fallback::hash && options.hash_shards.empty()) {
    return {Code::refused, "--fallback hash needs --hash-shards A,B,…"};
  }
  if (options.fallback != Fallback::hash && !options.hash_shards.empty()) {
    return {Code::refused, "--hash-shards goes with --fallback hash only"};
  }
  std::set<std::string> seen;
  for (const std::string& shard : options.hash_shards) {
    if (const auto why = why_not_shard_name(shard)) {
      return {Code::refused, "hash shard " + in_quotes(shard) + " " + std::string(*why)};
    }
    // The list is fixed for ever, and so would be a slip.
    if (!seen.insert(shard).second)
      return {Code::refused, "hash shard " + in_quotes(shard) + " is listed twice"};
  }
  return {};
}

Result<InitResult> init_directory(std::string_view url, const InitOptions& options) {
  if (Status status = check_init_options(options); !status.ok()) return status;
  Result<std::string> path = sqlite_path_of_url(url);
  if (!path) return path.status();
  if (!options.group.empty()) {
    if (Status status = prepare_group_file(*path, options.group); !status.ok()) return status;
  }
  if (Status status = check_folder_of(*path); !status.ok()) return status;
  SqliteDb db(*path, SqliteDb::Mode::create);
  const auto refuse_if_used = [&]() -> Status {
    if (db.integer("SELECT count(*) FROM sqlite_schema WHERE name = 'directory_layout'") != 0) {
      return {Code::conflict, *path + ": is a directory already"};
    }
    if (db.integer("SELECT count(*) FROM sqlite_schema") != 0) {
      return {Code::refused, *path + ": is a database of something else"};
    }
    return {};
  };
  if (Status status = refuse_if_used(); !status.ok()) return status;
  // The mode cannot be set inside a transaction, and stays with the file.
  SqliteStatement mode = db.prepare("PRAGMA journal_mode = WAL");
  if (!mode.step() || mode.text(0) != "wal") {
    return Status(Code::refused, *path + ": this file system does not carry a write-ahead log");
  }
  mode.reset();

  InitResult result{random_uuid(), 0};
  SqliteTransaction transaction(db, SqliteTransaction::Kind::write);
  if (Status status = refuse_if_used(); !status.ok())
    return status;  // somebody else may have been first
  db.exec(std::string(kSchemaSql));
  db.prepare("INSERT INTO directory_session (id, who, verb) VALUES (1, ?, 'init')")
      .bind(this_user())
      .run();
  db.prepare(
        "INSERT INTO directory_layout (id, directory_id, buckets, fallback, hash_shards, "
        "schema_version) "
        "VALUES (1, ?, ?, ?, ?, ?)")
      .bind(to_string(result.directory_id), options.buckets, name_of(options.fallback),
            to_json_list(options.hash_shards), kSchemaVersion)
      .run();
  SqliteStatement add_shard = db.prepare("INSERT INTO shard_topology (shard_id) VALUES (?)");
  for (const std::string& shard : options.hash_shards) add_shard.bind(shard).run();
  db.exec("DELETE FROM directory_session");
  result.version = static_cast<std::uint64_t>(db.integer("SELECT version FROM directory_version"));
  transaction.commit();
  return result;
}

}  // namespace fingerpost
