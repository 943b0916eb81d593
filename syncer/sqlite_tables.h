// The tables of a directory in SQLite (tools/schema.sql), read as values. Every function reads
// through the connection it is given, inside whatever transaction that has open, and throws
// SqliteError.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/shard_spec.h"
#include "shm/status.h"
#include "syncer/batch.h"
#include "syncer/sqlite_db.h"

namespace fingerpost {

// The newest schema that this build reads.
inline constexpr std::uint32_t kSchemaVersionMax = 1;

// Refused (as the error's status) where the file is no directory of ours, or one of a newer schema.
void check_is_directory(SqliteDb& db);

DirectoryLayout read_layout_row(SqliteDb& db);
std::uint64_t read_topology_epoch(SqliteDb& db);
std::vector<ShardSpec> read_topology_rows(SqliteDb& db);

// The highest version that somebody has approved for the poison guard; 0: none.
std::uint64_t read_approved_version(SqliteDb& db);

// Where the directory is now.
Cursor read_position(SqliteDb& db);
// Whether this history went through `cursor`.
bool history_has(SqliteDb& db, const Cursor& cursor);

// The lists in which the tables keep several values: a JSON array of strings, a JSON object of
// strings.
Result<std::vector<std::string>> parse_string_list(std::string_view json);
Result<std::vector<std::pair<std::string, std::string>>> parse_string_map(std::string_view json);

}  // namespace fingerpost
