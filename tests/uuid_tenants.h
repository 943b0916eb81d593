// Tenants by the hundred thousand, and what they take.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/daemon_host.h"

namespace fingerpost {

inline std::string uuid_of(std::mt19937_64& random) {
  char text[37];
  const std::uint64_t high = random();
  const std::uint64_t low = random();
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-%04x-%012llx",
                static_cast<unsigned>(high >> 32), static_cast<unsigned>(high >> 16 & 0xffff),
                static_cast<unsigned>(high & 0xfff),
                static_cast<unsigned>(0x8000 | (low >> 48 & 0x3fff)),
                static_cast<unsigned long long>(low & 0xffffffffffff));
  return text;
}

inline std::vector<std::string> add_uuids(const DaemonHost& host, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::string> ids;
  SqliteDb db = host.db();
  db.exec("CREATE TEMP TABLE staged (id TEXT)");  // one statement runs its triggers faster
  SqliteTransaction transaction(db, SqliteTransaction::Kind::write);
  SqliteStatement put = db.prepare("INSERT INTO staged VALUES (?)");
  for (int i = 0; i < count; ++i) {
    ids.push_back(uuid_of(random));
    put.reset();
    put.bind(ids.back());
    put.run();
  }
  db.exec("INSERT INTO shard_directory (entry_id, shard_id) SELECT id, 'alpha' FROM staged");
  transaction.commit();
  return ids;
}

inline std::uint64_t allocated_bytes_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

}  // namespace fingerpost
