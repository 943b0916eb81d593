// Where new tenants go: by load and weight, in a region, beside pins, and with many creators at
// once.
#include "tools/placement.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/placing_directory.h"
#include "tests/run_program.h"
#include "tools/directory_pins.h"

namespace fingerpost {

TEST_CASE("of shards with the same score the id's hash chooses, always the same") {
  const std::vector<ShardLoad> loads = {
      {"a", "eu", 100, 0, {}}, {"b", "eu", 100, 0, {}}, {"c", "us", 100, 0, {}}};
  std::map<std::size_t, int> chosen;
  for (int i = 0; i < 3'000; ++i) {
    const std::string id = fmt::format("t{}", i);
    const auto at = place(loads, {}, id);
    REQUIRE(at);
    CHECK(place(loads, {}, id) == at);
    ++chosen[*at];
  }
  for (const auto& [at, count] : chosen) CHECK(std::abs(count - 1'000) < 150);
  CHECK(place(loads, "us", "x") == 2U);
  CHECK_FALSE(place(loads, "asia", "x"));
}

TEST_CASE("weight 0 takes none, and a reported load counts where it is more than the tenants") {
  std::vector<ShardLoad> loads = {
      {"a", "", 0, 0, {}}, {"b", "", 100, 50, {}}, {"c", "", 50, 20, {}}};
  CHECK(place(loads, {}, "x") == 2U);
  loads[2].reported = 60;  // 1.2 a weight, against 0.5
  CHECK(place(loads, {}, "x") == 1U);
  loads[2].reported = 3;  // less than its tenants: 0.4
  CHECK(place(loads, {}, "x") == 2U);
  loads[1].weight = loads[2].weight = 0;
  CHECK_FALSE(place(loads, {}, "x"));
}

// Smaller than what is promised; placement_long_test.cpp has the full size.
TEST_CASE("creates end with counts as the weights are") {
  Placing made;
  check_counts_follow_weights(made, 1'000);
}

TEST_CASE("creates beside reported loads level the scores of whoever received any") {
  Placing made;
  check_scores_are_level(made, 1'000);
}

TEST_CASE("a create keeps to the region, its own or the pin's, and a dry run writes nothing") {
  Placing made;
  Directory& directory = made.with({{"a", "eu", 100, {}}, {"b", "us", 100, {}}});
  CHECK(create(directory, "x", "us")->shard == "b");
  CHECK(create(directory, "x", "us")->written == false);
  CHECK(create(directory, "x")->shard == "b");
  CHECK(create(directory, "x", "eu").status().code() == Code::conflict);
  CHECK(create(directory, "y", "asia").status().message() == "there is no shard of region 'asia'");

  REQUIRE(pin_tenant(directory, "y", "us", "").ok());
  const std::uint64_t before = directory.version();
  CreateWish wish;
  wish.dry_run = true;
  const auto tried = create_tenant(directory, "y", wish);
  REQUIRE(tried.ok());
  CHECK(tried->shard == "b");
  CHECK(tried->written);
  CHECK(tried->version == before);
  CHECK(directory.version() == before);
  CHECK(made.entry("y") == "nothing");
  CHECK(create(directory, "y", "eu").status().message() ==
        "tenant 'y' is pinned to region 'us'; shard 'a' is of region 'eu'");
  CHECK(create(directory, "y")->shard == "b");

  ShardEdit drained;
  drained.weight = 0;
  REQUIRE(set_shard(directory, "a", drained).ok());
  CHECK(create(directory, "z", "eu").status().message() ==
        "no shard of region 'eu' takes new tenants: none is there, or all have weight 0");
}

TEST_CASE("where a bucket or the hash rule answers, a create without a wish writes no entry") {
  SUBCASE("bucket") {
    MovingDirectory made;
    Directory& directory = made.with_buckets(1);
    const std::uint64_t before = directory.version();
    const auto created = create(directory, "x");
    REQUIRE(created.ok());
    CHECK(created->shard == "s1");
    CHECK(created->answered_by == "bucket:0");
    CHECK_FALSE(created->written);
    CHECK(directory.version() == before);
    // Back from DELETED it has an entry, which must say so.
    REQUIRE(create_tenant(directory, "y", "s2").ok());
    REQUIRE(delete_tenant(directory, "y").ok());
    CHECK(create(directory, "y")->written);
    CHECK(made.entry("y") == "s1 ACTIVE");
  }
  SUBCASE("hash") {
    MovingDirectory made;
    const auto created = create(made.with_hash(), "x");
    REQUIRE(created.ok());
    CHECK(created->answered_by == "the hash rule");
    CHECK(made.entry("x") == "nothing");
  }
  SUBCASE("a bucket without a shard") {
    TempFolder folder;
    REQUIRE(init_directory(folder.file("d.db"), {Fallback::buckets, 4, {}, {}}).ok());
    auto directory = Directory::open(folder.file("d.db"));
    REQUIRE(directory.ok());
    CHECK(create(**directory, "x").status().code() == Code::absent);
  }
}

TEST_CASE("a load is a number of tenants' worth, and takes no version") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  const std::uint64_t before = directory.version();
  REQUIRE(report_load(directory, "s1", 12.5).ok());
  CHECK(list_shards(directory)->front().reported == 12.5);
  CHECK(list_shards(directory)->front().reported_at.size() == 24);
  CHECK(directory.version() == before);
  for (const double wrong : {-1.0, std::nan(""), HUGE_VAL, 1e16}) {
    CHECK(report_load(directory, "s1", wrong).status().code() == Code::refused);
  }
  CHECK(report_load(directory, "s9", 1).status().code() == Code::absent);
  CHECK_THROWS_AS(made.sql("UPDATE shard_load SET reported = -1"), SqliteError);
}

TEST_CASE("fifty creators at once give no id two owners, and leave no row without one") {
  constexpr int kCreators = 50;
  constexpr int kIds = 40;
  Placing made;
  Directory& directory = made.with({{"a", "", 100, {}}, {"b", "", 100, {}}, {"c", "", 200, {}}});
  std::atomic<int> written{0};
  std::atomic<int> failed{0};
  std::vector<std::map<std::string, std::string>> answers(kCreators);
  std::vector<std::thread> creators;
  for (int creator = 0; creator < kCreators; ++creator) {
    creators.emplace_back([&, creator] {
      const auto own = made.open();
      for (int i = 0; i < kIds; ++i) {
        // Half the ids are everybody's.
        const std::string id =
            i % 2 == 0 ? fmt::format("shared-{}", i) : fmt::format("own-{}-{}", creator, i);
        const auto created = create(*own, id);
        if (!created) {
          ++failed;
          continue;
        }
        if (created->written) ++written;
        answers[static_cast<std::size_t>(creator)][id] = created->shard;
      }
    });
  }
  for (std::thread& creator : creators) creator.join();
  CHECK(failed == 0);
  const int ids = kIds / 2 + kCreators * kIds / 2;
  CHECK(written == ids);
  CHECK(directory.db().integer("SELECT count(*) FROM shard_directory") == ids);
  CHECK(directory.db().integer("SELECT count(*) FROM shard_directory WHERE shard_id NOT IN (SELECT "
                               "shard_id FROM shard_topology)") == 0);
  // What each creator was told is what is there.
  for (const auto& told : answers) {
    for (const auto& [id, shard] : told) CHECK(made.entry(id) == shard + " ACTIVE");
  }
  check_counts(directory);
}

TEST_CASE("the command says where a tenant went, or would go, and why it wrote nothing") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  const auto fingerpost = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--directory", made.path});
    return run_program(FINGERPOST_PROGRAM, arguments);
  };
  const std::uint64_t version = directory.version();
  CHECK(fingerpost({"tenant", "create", "x"}).out ==
        fmt::format("no entry written: bucket:0 answers for it, shard s1\nversion {}\n", version));
  CHECK(fingerpost({"tenant", "create", "x", "--shard", "s2", "--dry-run"}).out ==
        fmt::format("would be on shard s2\nversion {}\n", version));
  const Ran created = fingerpost({"tenant", "create", "x", "--shard", "s2", "--json"});
  CHECK(nlohmann::json::parse(created.out)["shard"] == "s2");
  CHECK(nlohmann::json::parse(created.out)["written"] == true);
  CHECK(fingerpost({"tenant", "create", "x", "--shard", ""}).status == 2);
  CHECK(fingerpost({"tenant", "create", "x", "--shard", "s1", "--region", "eu"}).status == 2);
  CHECK(fingerpost({"shard", "report", "s1", "--load", "7"}).status == 0);
  CHECK(fingerpost({"shard", "report", "s1", "--load", "-7"}).status == 2);
  CHECK(fingerpost({"shard", "report", "s9", "--load", "7"}).status == 1);
  const Ran list = fingerpost({"shard", "list", "--json"});
  CHECK(nlohmann::json::parse(list.out.substr(0, list.out.find('\n')))["load"] == 7.0);
}

}  // namespace fingerpost
