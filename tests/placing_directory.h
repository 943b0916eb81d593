// A directory for new tenants, and what thousands of them must end with.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/moving_directory.h"
#include "tools/placement.h"

namespace fingerpost {

struct Wanted {
  std::string shard;
  std::string region;
  std::uint32_t weight = 100;
  std::optional<double> load;
};

// Beneath /dev/shm: ten thousand commits that wait for a disk are a test of the disk.
struct Placing : MovingDirectory {
  Placing() : MovingDirectory("/dev/shm") {}

  Directory& with(const std::vector<Wanted>& shards) {
    without_fallback();
    for (const char* name : {"s1", "s2"}) REQUIRE(remove_shard(*directory, name).ok());
    for (const Wanted& wanted : shards) {
      ShardSpec spec;
      spec.name = wanted.shard;
      spec.region = wanted.region;
      spec.weight = wanted.weight;
      REQUIRE(add_shard(*directory, spec).ok());
      if (wanted.load) REQUIRE(report_load(*directory, wanted.shard, *wanted.load).ok());
    }
    return *directory;
  }
};

inline std::map<std::string, ShardLoad> loads_of(Directory& directory) {
  std::map<std::string, ShardLoad> loads;
  for (const ShardLoad& load : shard_loads(directory)) loads[load.shard] = load;
  return loads;
}

// What the triggers count is what is there.
inline void check_counts(Directory& directory) {
  CHECK(
      directory.db().integer(
          "SELECT count(*) FROM shard_load AS l WHERE tenants <> (SELECT count(*) FROM "
          "shard_directory AS d WHERE d.shard_id = l.shard_id AND state <> 'DELETED' AND entry_id "
          "NOT GLOB 'bucket:*' AND entry_id NOT GLOB 'part:*')") == 0);
}

inline Result<Created> create(Directory& directory, const std::string& id,
                              const std::string& region = {}) {
  CreateWish wish;
  wish.region = region;
  return create_tenant(directory, id, wish);
}

// Without loads.
inline void check_counts_follow_weights(Placing& made, int creates) {
  Directory& directory =
      made.with({{"a", "", 100, {}}, {"b", "", 50, {}}, {"c", "", 250, {}}, {"full", "", 0, {}}});
  for (int i = 0; i < creates; ++i) REQUIRE(create(directory, fmt::format("t{}", i)).ok());
  for (const auto& loaded : loads_of(directory)) {
    const auto& load = loaded.second;
    const double wanted = creates * static_cast<double>(load.weight) / 400;
    CHECK_MESSAGE(std::abs(static_cast<double>(load.tenants) - wanted) <= 0.02 * wanted,
                  loaded.first, " has ", load.tenants);
  }
  check_counts(directory);
}

// Levelled, the scores are above what b has and below what d has.
inline void check_scores_are_level(Placing& made, int creates) {
  Directory& directory = made.with({{"a", "", 100, 0.15 * creates},
                                    {"b", "", 100, {}},
                                    {"c", "", 200, 40.5},
                                    {"d", "", 50, 0.9 * creates},
                                    {"e", "", 0, {}}});
  for (int i = 0; i < creates; ++i) REQUIRE(create(directory, fmt::format("t{}", i)).ok());
  double least = HUGE_VAL;
  double most = 0;
  double untouched = HUGE_VAL;
  for (const auto& [name, load] : loads_of(directory)) {
    if (load.weight == 0) {
      CHECK(load.tenants == 0);
    } else if (load.tenants == 0) {
      untouched = std::min(untouched, score_of(load));
    } else {
      least = std::min(least, score_of(load));
      most = std::max(most, score_of(load));
    }
  }
  CHECK(most > 0);
  CHECK(untouched < HUGE_VAL);
  CHECK(most - least <= 0.02 * most);
  CHECK(untouched >= most);
  check_counts(directory);
}

}  // namespace fingerpost
