// `fingerpost history …`: what became of an entry, from directory_history, which is never pruned.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

// What an entry was; all empty where it was not in the table.
struct EntryImage {
  std::string shard;
  std::string state;
  std::string target;

  bool operator==(const EntryImage&) const = default;
};

struct EntryChange {
  std::uint64_t version = 0;  // the epoch that it gave the entry
  std::string at;             // the database's time, UTC
  EntryImage before;
  EntryImage after;
  std::string who;  // empty, like the verb, where plain SQL made the change
  std::string verb;
  std::string note;
  std::optional<std::int64_t> frozen_ms;  // of a change that ended a freeze: how long it lasted
};

// In the order of versions. Refused for what is no entry id; empty if there never was such an
// entry.
Result<std::vector<EntryChange>> entry_history(Directory& directory, std::string_view entry);

// The change that made the entry what it was at `version`; nullopt if it was not in the table yet,
// and one without an image after it if it had left. Refused for a version that the directory has
// not reached.
Result<std::optional<EntryChange>> entry_at(Directory& directory, std::string_view entry,
                                            std::uint64_t version);

}  // namespace fingerpost
