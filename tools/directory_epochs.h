// `fingerpost directory rebase` and `fingerpost approve`: what an administrator says about versions
// as such.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <string_view>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

// Far beyond what counting reaches, and far below where a counter of 63 bits ends.
inline constexpr std::uint64_t kRebaseMax = std::uint64_t{1} << 62;

// After a restore from a backup: lifts the counter above `above`, which hosts or shards have seen,
// and gives every entry, every shard and the routes by hash an epoch above it. Holds the write lock
// for some 40 µs a row. Refused while a move is open: what the backup says of it is no longer
// known to be so. The version.
Result<std::uint64_t> rebase_directory(Directory& directory, std::uint64_t above);

// Lets the poison guard of every host apply what it withholds, up to `version`. Refused for a
// version that the directory has not reached; done already where it is approved. The version that
// the directory is at.
Result<std::uint64_t> approve_version(Directory& directory, std::uint64_t version,
                                      std::string_view who = {});

}  // namespace fingerpost
