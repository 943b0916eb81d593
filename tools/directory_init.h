// `fingerpost init`: makes a directory. All or nothing: a run that was cut can be repeated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/layout.h"
#include "shm/status.h"
#include "syncer/batch.h"

namespace fingerpost {

struct InitOptions {
  Fallback fallback = Fallback::none;
  std::uint32_t buckets = 0;
  std::vector<std::string> hash_shards;
  std::string group;  // whose members may read and write; empty: as the umask says
};

struct InitResult {
  DirectoryId directory_id{};
  std::uint64_t version = 0;
};

// As the schema, the command line and an export write it.
std::string_view name_of(Fallback fallback);

// Why the options make no sense together, before anything is touched.
Status check_init_options(const InitOptions& options);

// Makes the directory at `url`. Its shards of the hash list are added to the topology, without
// addresses, in the same transaction, so that no route by hash ever names a shard that is unknown.
//
// With a group: the file gets that group and mode 0660, and its folder, where SQLite makes the log
// that readers share too, must be of that group, group-writable and setgid. A folder that is
// missing is made so; one that exists is never changed.
//
// Refused where something else lies at that path, conflict where a directory is there already.
// Throws SqliteError.
Result<InitResult> init_directory(std::string_view url, const InitOptions& options);

}  // namespace fingerpost
