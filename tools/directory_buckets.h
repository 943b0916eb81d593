// `fingerpost bucket …`: which shard answers for the tenants that have no entry of their own.
// Assigning fills what is unassigned, and never moves.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

struct ShardShare {
  std::string shard;
  std::uint32_t weight = 0;
  std::uint64_t buckets = 0;  // it has so many already
};

// The index of the share that each of `count` further buckets goes to: always the one that has the
// fewest for its weight, the earlier of equals; none with weight 0. The same input gives the same
// answer. Empty if no share has weight.
std::vector<std::size_t> spread_buckets(std::vector<ShardShare> shares, std::size_t count);

struct AssignResult {
  std::uint64_t assigned = 0;
  std::uint64_t version = 0;
};

// `only`: the shards to assign to; empty: all. `range`: the buckets to look at, both ends included.
Result<AssignResult> assign_buckets(Directory& directory, const std::vector<std::string>& only,
                                    std::optional<std::pair<std::uint32_t, std::uint32_t>> range);

struct BucketRow {
  std::uint32_t bucket = 0;
  std::string shard;  // empty: unassigned; so is all that follows
  std::string state;
  std::string target;
  std::uint64_t epoch = 0;
};

// All of them, in order. Refused where the directory has none.
Result<std::vector<BucketRow>> list_buckets(Directory& directory);

}  // namespace fingerpost
