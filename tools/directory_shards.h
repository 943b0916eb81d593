// `fingerpost shard …`: the topology. A failover changes a shard's row here and nothing else.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shm/shard_spec.h"
#include "shm/status.h"
#include "tools/directory.h"
#include "tools/placement.h"

namespace fingerpost {

// Why not, as the end of a sentence, or nullopt. A name is 1 to 32 bytes of UTF-8 without control
// characters; a field (address, region, attribute) is at most 1024 of them. An address with
// "user:password@" is refused as well: every worker can read the whole directory. A ':' before an
// '@', a scheme aside, counts as one.
std::optional<std::string_view> why_not_shard_name(std::string_view name);
std::optional<std::string_view> why_not_shard_field(std::string_view field);
std::optional<std::string_view> why_not_address(std::string_view address);

// What `shard set` was given. What is not given stays.
struct ShardEdit {
  std::optional<std::string> primary;
  std::optional<std::vector<std::string>> replicas;  // the whole list
  std::optional<std::string> region;
  std::optional<std::uint32_t> weight;
  std::vector<std::pair<std::string, std::string>>
      attributes;  // an empty value removes the attribute
};

// The spec with the edit applied, or why that is no shard.
Result<ShardSpec> edited(ShardSpec spec, const ShardEdit& edit);

struct ShardRow {
  ShardSpec spec;
  std::uint64_t epoch = 0;
  std::uint64_t tenants = 0;       // entries of tenants that are not DELETED
  std::optional<double> reported;  // load, in tenants' worth
  std::string reported_at;         // the database's time, UTC; empty: never
};

// Sorted by name.
Result<std::vector<ShardRow>> list_shards(Directory& directory);

// For the inside of a change: adds the shard, or sets one of that name to these values. The spec is
// one that edited() gave out.
void write_shard(Directory& directory, const ShardSpec& spec);

// What placement goes by, sorted by name.
std::vector<ShardLoad> shard_loads(Directory& directory);

// Each returns the version. Adding an equal shard again is done already; another one of that name
// is a conflict.
Result<std::uint64_t> add_shard(Directory& directory, const ShardSpec& spec);
// Absent if there is no such shard.
Result<std::uint64_t> set_shard(Directory& directory, std::string_view name, const ShardEdit& edit);
// The load of a shard, in tenants' worth: 1.0 is that of an average tenant. Takes no version:
// nothing that syncers serve changes. Refused unless finite and not negative.
Result<std::uint64_t> report_load(Directory& directory, std::string_view name, double load);
// Refused while an entry, a bucket or the hash list names it. Absent if there is no such shard.
Result<std::uint64_t> remove_shard(Directory& directory, std::string_view name);

}  // namespace fingerpost
