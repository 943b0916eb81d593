// Pins: what keeps a tenant where it is, from every door.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_moves.h"
#include "tools/directory_pins.h"
#include "tools/directory_removals.h"
#include "tools/directory_splits.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

const Mover kMia{"mia@h1", {}};

// s1 is in eu, s2 in us.
Directory& with_regions(MovingDirectory& made, Directory& directory) {
  made.sql("UPDATE shard_topology SET region = CASE shard_id WHEN 's1' THEN 'eu' ELSE 'us' END");
  return directory;
}

void move_entry(Directory& directory, const std::string& entry, const std::string& to) {
  const auto marked = mark_move(directory, entry, to, 15min, kMia);
  REQUIRE_MESSAGE(marked.ok(), marked.status().message());
  REQUIRE(freeze_move(directory, entry, kMia).ok());
  REQUIRE(flip_move(directory, entry, kMia).ok());
}

}  // namespace

TEST_CASE("a pinned tenant has an entry of its own, which no bucket's move touches") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  const auto pinned = pin_tenant(directory, "acme", "", "contract 7");
  REQUIRE_MESSAGE(pinned.ok(), pinned.status().message());
  CHECK(*pinned == directory.version());
  CHECK(made.entry("acme") == "s1 ACTIVE");
  CHECK(*pin_tenant(directory, "acme", "", "contract 7") == *pinned);
  CHECK(find_pin(directory, "acme")->reason == "contract 7");
  move_entry(directory, "bucket:0", "s2");
  CHECK(made.entry("acme") == "s1 ACTIVE");
  // Nor does it go back beneath the bucket, as long as it is pinned.
  move_entry(directory, "acme", "s2");
  CHECK(forget_tenant(directory, "acme").status().message().find("is pinned") != std::string::npos);
  REQUIRE(unpin_tenant(directory, "acme").ok());
  CHECK(unpin_tenant(directory, "acme").status().code() == Code::absent);
  CHECK(forget_tenant(directory, "acme").ok());
  // The history of pins is the directory's.
  CHECK(directory.db().integer("SELECT count(*) FROM directory_history WHERE kind = 'pin' AND "
                               "subject = 'acme' AND verb IN ('tenant pin', 'tenant unpin') AND "
                               "who IS NOT NULL") == 2);
  CHECK(directory.db().integer("SELECT count(*) FROM directory_history") ==
        static_cast<std::int64_t>(directory.version()));
}

TEST_CASE("while the bucket that answers is being moved, nothing is pinned") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  REQUIRE(mark_move(directory, "bucket:0", "s2", 15min, kMia).ok());
  CHECK(pin_tenant(directory, "acme", "", "").status().code() == Code::conflict);
  CHECK(made.entry("acme") == "nothing");
}

TEST_CASE("a region is kept by create, by mark, by plain SQL and by the shard itself") {
  MovingDirectory made;
  Directory& directory = with_regions(made, made.without_fallback());
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  CHECK(pin_tenant(directory, "acme", "us", "").status().message() ==
        "'acme' is on shard 's1', of region 'eu': it cannot be pinned to 'us' before a move there");
  CHECK(pin_tenant(directory, "acme", "mars", "").status().code() == Code::refused);
  REQUIRE(pin_tenant(directory, "acme", "eu", "law").ok());
  const std::uint64_t before = directory.version();
  CHECK(mark_move(directory, "acme", "s2", 15min, kMia).status().message() ==
        "tenant 'acme' is pinned to region 'eu': law; shard 's2' is of region 'us'");
  for (const char* sql :
       {"UPDATE shard_directory SET shard_id = 's2' WHERE entry_id = 'acme'",
        "UPDATE shard_directory SET target_shard = 's2', state = 'MIGRATING'",
        "INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('acme', 's2')"}) {
    CAPTURE(sql);
    CHECK_THROWS_WITH_AS(made.sql(sql), doctest::Contains("pinned to another region"), SqliteError);
  }
  ShardEdit edit;
  edit.region = "us";
  CHECK_THROWS_WITH_AS((void)set_shard(directory, "s1", edit),
                       doctest::Contains("is pinned to its region"), SqliteError);
  CHECK_THROWS_WITH_AS(made.sql("UPDATE directory_pin SET region = 'us'"),
                       doctest::Contains("in another region"), SqliteError);
  CHECK(directory.version() == before);

  // Deleted, it may come back, but not elsewhere.
  REQUIRE(delete_tenant(directory, "acme").ok());
  CHECK(create_tenant(directory, "acme", "s2").status().code() == Code::conflict);
  CHECK(create_tenant(directory, "acme", "s1").ok());
  // Purged, it is another tenant that comes.
  REQUIRE(delete_tenant(directory, "acme").ok());
  REQUIRE(purge_tenant(directory, "acme", 0ms).ok());
  CHECK_FALSE(find_pin(directory, "acme"));
  CHECK(create_tenant(directory, "acme", "s2").ok());
}

TEST_CASE("the parts of a split tenant keep its region, each of them") {
  MovingDirectory made;
  Directory& directory = with_regions(made, made.without_fallback());
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  REQUIRE(split_tenant(directory, "acme", 2).ok());
  move_entry(directory, "part:1:acme", "s2");
  CHECK(pin_tenant(directory, "acme", "eu", "").status().message() ==
        "'part:1:acme' is on shard 's2', of region 'us': it cannot be pinned to 'eu' before a move "
        "there");
  REQUIRE(mark_move(directory, "part:1:acme", "s1", 15min, kMia).ok());
  CHECK(pin_tenant(directory, "acme", "eu", "").status().code() == Code::conflict);
  REQUIRE(freeze_move(directory, "part:1:acme", kMia).ok());
  REQUIRE(flip_move(directory, "part:1:acme", kMia).ok());
  REQUIRE(pin_tenant(directory, "acme", "eu", "").ok());
  CHECK(mark_move(directory, "part:0:acme", "s2", 15min, kMia).status().code() == Code::conflict);
  CHECK_THROWS_AS(made.sql("UPDATE shard_directory SET shard_id = 's2' WHERE entry_id = "
                           "'part:1:acme'"),
                  SqliteError);
  CHECK_THROWS_AS(made.sql("UPDATE shard_topology SET region = 'asia' WHERE shard_id = 's1'"),
                  SqliteError);
}

TEST_CASE("plain SQL pins tenants, and nothing that is none") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  const std::string insert = "INSERT INTO directory_pin (entry_id, who, at) VALUES (";
  CHECK_THROWS_WITH_AS(made.sql(insert + "'bucket:0', 'me', 'now')"),
                       doctest::Contains("a pin is a tenant's"), SqliteError);
  CHECK_THROWS_WITH_AS(made.sql(insert + "'acme', 'me', 'now')"),
                       doctest::Contains("needs an entry of its own"), SqliteError);
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  made.sql(insert + "'acme', 'me', 'now')");
  CHECK(forget_tenant(directory, "acme").status().code() == Code::refused);
  made.sql("DELETE FROM directory_pin");
  CHECK(directory.db().integer("SELECT count(*) FROM directory_history") ==
        static_cast<std::int64_t>(directory.version()));
}

TEST_CASE("the command pins, lists and unpins") {
  MovingDirectory made;
  Directory& directory = with_regions(made, made.with_buckets(1));
  const auto fingerpost = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--directory", made.path});
    return run_program(FINGERPOST_PROGRAM, arguments);
  };
  const Ran pinned = fingerpost({"tenant", "pin", "acme", "--region", "eu", "--reason", "law"});
  CHECK(pinned.out == fmt::format("version {}\n", directory.version()));
  const auto listed = nlohmann::json::parse(fingerpost({"tenant", "pins", "--json"}).out);
  CHECK(listed["id"] == "acme");
  CHECK(listed["region"] == "eu");
  CHECK(listed["reason"] == "law");
  CHECK(fingerpost({"move", "mark", "acme", "--to", "s2"}).status == 3);
  CHECK(fingerpost({"tenant", "unpin", "acme"}).status == 0);
  CHECK(fingerpost({"tenant", "unpin", "acme"}).status == 1);
  CHECK(fingerpost({"tenant", "pins"}).out.empty());
}

}  // namespace fingerpost
