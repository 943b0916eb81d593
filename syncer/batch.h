// What one read transaction of a directory says, as values. Knows no database and no shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shm/directory_id.h"
#include "shm/shard_spec.h"

namespace fingerpost {

// A position in one history of a directory. Two histories that reach the same version differ in the
// nonce.
struct Cursor {
  std::uint64_t version = 0;
  std::uint64_t nonce = 0;

  bool operator==(const Cursor&) const = default;
};

enum class Fallback : std::uint8_t { none = 0, buckets = 1, hash = 2 };

struct DirectoryLayout {
  DirectoryId directory_id{};
  std::uint32_t schema_version = 0;
  Fallback fallback = Fallback::none;
  std::uint32_t buckets = 0;             // B; 0 unless fallback is buckets
  std::vector<std::string> hash_shards;  // the fixed list; empty unless fallback is hash
  std::uint64_t replay_floor =
      0;                    // a cursor below it must reload: removals before it are forgotten
  std::uint64_t epoch = 0;  // the epoch of every route by hash

  bool operator==(const DirectoryLayout&) const = default;
};

// A row of shard_directory, unjudged. The views live as long as the Batch or FullRead they came
// from.
struct EntryRow {
  std::string_view id;
  std::string_view shard;
  std::string_view
      state;  // "ACTIVE", "MIGRATING", "FROZEN", "DELETED", or what a newer writer put there
  std::string_view target;  // empty when NULL
  std::uint64_t epoch = 0;
  bool by_verb = false;  // the history row of this epoch names a verb of ours
};

// A tenant in parts, whole, as the directory had it at version `read_at`; unjudged.
struct SplitRow {
  std::string_view id;
  std::uint64_t epoch = 0;  // of its row in directory_split
  std::uint64_t read_at = 0;
  // In order. They have no id, and one that the directory lacks has no shard either.
  std::vector<EntryRow> parts;
  std::vector<bool> held;  // parts that must stay as they are served; empty: none
};

struct Removal {
  std::string_view id;
  std::uint64_t version = 0;
  bool by_verb = false;  // as above, of this version
};

// Everything that changed since a cursor, read in one transaction.
class Batch {
 public:
  enum class Kind : std::uint8_t {
    changes,        // rows, removals, topology and layout since the cursor; possibly none
    below_floor,    // the cursor is older than replay_floor: reload, same incarnation
    other_history,  // the cursor's nonce is not in this history: reload, next incarnation
  };

  Kind kind = Kind::changes;
  Cursor end;                  // the directory's position at this read
  std::uint64_t approved = 0;  // the poison guard lets changes up to this version through
  DirectoryLayout layout;      // always set
  std::optional<std::vector<ShardSpec>>
      topology;                // the whole of it, if any of it changed since the cursor
  // In epoch order. Neither parts nor the own rows of split tenants, unless these are DELETED.
  std::vector<EntryRow> rows;
  std::vector<SplitRow> splits;  // tenants of which anything changed, the number of parts included
  std::vector<Removal> removals;

  // Copies `text` into memory that lives as long as this batch.
  std::string_view keep(std::string_view text);
  EntryRow keep(EntryRow row);
  SplitRow keep(SplitRow split);

 private:
  static constexpr std::size_t kChunkBytes = 256 * 1024;
  std::vector<std::unique_ptr<char[]>> chunks_;
  std::size_t used_ = kChunkBytes;
};

}  // namespace fingerpost
