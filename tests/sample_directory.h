// A directory in SQLite as `fingerpost init` leaves it, in a folder of the test's own.
#pragma once

#include <filesystem>
#include <string>

#include "syncer/sqlite_db.h"
#include "tools/schema.h"

namespace fingerpost {

inline constexpr const char* kSampleDirectoryId = "0f000000-0000-4000-8000-000000000001";

// Makes the directory, with 16 buckets and the shards alpha, beta and gamma.
inline void make_sample_directory(const std::string& path,
                                  const std::string& id = kSampleDirectoryId) {
  SqliteDb db(path, SqliteDb::Mode::create);
  db.exec("PRAGMA journal_mode = WAL");
  const SqliteTransaction transaction(db, SqliteTransaction::Kind::write);
  db.exec(std::string(kSchemaSql));
  db.exec(std::string("INSERT INTO directory_layout (id, directory_id, buckets, fallback, "
                      "schema_version) VALUES (1, '") +
          id + "', 16, 'buckets', 1)");
  db.exec(
      "INSERT INTO shard_topology (shard_id, primary_address, replicas, region, weight, "
      "attributes) "
      "VALUES ('alpha', '10.0.0.1:5432', '[\"10.0.1.1:5432\",\"10.0.1.2:5432\"]', 'eu', 7, "
      "'{\"tier\":\"gold\",\"disk\":\"ssd\"}'), ('beta', '', '[]', '', 100, '{}'), "
      "('gamma', '', '[]', '', 0, '{}')");
  db.exec("COMMIT");
}

inline void put_tenant(SqliteDb& db, const std::string& id, const std::string& shard) {
  db.prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
      .bind(id, shard)
      .run();
}

// Tenants `prefix`0 and so on.
inline void put_tenants(SqliteDb& db, int count, const std::string& shard,
                        const std::string& prefix = "t") {
  db.exec(
      "INSERT INTO shard_directory (entry_id, shard_id) WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL "
      "SELECT i + 1 FROM n WHERE i + 1 < " +
      std::to_string(count) + ") SELECT '" + prefix + "' || i, '" + shard + "' FROM n");
}

// A backup of the directory in `path`, as it is now.
inline void copy_database(const std::string& path, const std::string& to) {
  SqliteDb(path, SqliteDb::Mode::read_write).exec("VACUUM INTO '" + to + "'");
}

// Restores it: another file gets the name, and the log of the old one goes.
inline void replace_database(const std::string& path, const std::string& from) {
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path + suffix);
  const std::string incoming = path + ".incoming";
  std::filesystem::copy_file(from, incoming, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::rename(incoming, path);
}

}  // namespace fingerpost
