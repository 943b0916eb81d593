// Splitting, growing and merging a tenant in the directory: which is legal from where, what becomes
// of objects and epochs, and what plain SQL may do.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "shm/hash.h"
#include "shm/tenant_id.h"
#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_epochs.h"
#include "tools/directory_history.h"
#include "tools/directory_moves.h"
#include "tools/directory_removals.h"
#include "tools/directory_splits.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

const Mover kMia{"mia@h1", {}};

template <class T>
void check_refused(const Result<T>& result, Code code, const std::string& text) {
  CHECK(result.status().code() == code);
  const std::string& message = result.status().message();
  const bool found = message.find(text) != std::string::npos;
  CHECK_MESSAGE(found, message, " lacks: ", text);
}

void move_entry(Directory& directory, const std::string& entry, const std::string& to) {
  REQUIRE(mark_move(directory, entry, to, 15min, kMia).ok());
  REQUIRE(freeze_move(directory, entry, kMia).ok());
  REQUIRE(flip_move(directory, entry, kMia).ok());
}

struct ObjectRoute {
  std::string shard;
  std::uint64_t epoch = 0;
};

// Where a worker is to go for an object, by the rules of the design, from the rows alone.
ObjectRoute route_of(Directory& directory, const std::string& id, const std::string& object) {
  const auto own = find_entry(directory, id);
  REQUIRE(own);
  if (own->parts == 0) return {own->shard, own->epoch};
  const auto part = static_cast<std::uint32_t>(placement_hash(object) % own->parts);
  const auto row = find_entry(directory, part_entry_id(part, id));
  REQUIRE(row);
  return {row->shard, row->epoch};
}

std::map<std::string, ObjectRoute> routes_of(Directory& directory, const std::string& id) {
  std::map<std::string, ObjectRoute> routes;
  for (int i = 0; i < 200; ++i) {
    const std::string object = fmt::format("object-{}", i);
    routes[object] = route_of(directory, id, object);
  }
  return routes;
}

// No object moved, and no epoch went back.
void check_only_epochs_grew(Directory& directory, const std::string& id,
                            const std::map<std::string, ObjectRoute>& before) {
  for (const auto& [object, now] : routes_of(directory, id)) {
    CHECK(now.shard == before.at(object).shard);
    CHECK(now.epoch >= before.at(object).epoch);
  }
}

std::string shards_of_parts(Directory& directory, const std::string& id) {
  std::string text;
  for (const TenantRow& row : list_parts(directory, id)) {
    text += (text.empty() ? "" : " ") + row.shard;
  }
  return text;
}

}  // namespace

TEST_CASE("a split begins with every part where the tenant is, and moves them one by one") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  const auto before = routes_of(directory, "acme");
  const auto split = split_tenant(directory, "acme", 4);
  REQUIRE_MESSAGE(split.ok(), split.status().message());
  CHECK(shards_of_parts(directory, "acme") == "s1 s1 s1 s1");
  check_only_epochs_grew(directory, "acme", before);
  CHECK(made.epoch("acme") == *split);
  CHECK(directory.db().integer("SELECT epoch FROM directory_split") ==
        static_cast<std::int64_t>(*split));
  CHECK(entry_history(directory, "acme")->back().verb == "tenant split");
  CHECK(entry_history(directory, "acme")->back().note == "4 parts");
  CHECK(*split_tenant(directory, "acme", 4) == *split);

  move_entry(directory, "part:2:acme", "s2");
  CHECK(shards_of_parts(directory, "acme") == "s1 s1 s2 s1");
  CHECK(made.entry("acme") == "s1 ACTIVE");
  CHECK(made.epoch("acme") == *split);
  // The tenant's own entry goes with part 0, so that no shard is kept for its sake.
  move_entry(directory, "part:0:acme", "s2");
  CHECK(made.entry("acme") == "s2 ACTIVE");
  CHECK(directory.db().integer("SELECT tenants FROM shard_load WHERE shard_id = 's2'") == 1);
}

TEST_CASE("a tenant that its bucket answers for gets an entry of its own at the split") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  REQUIRE(split_tenant(directory, "acme", 2).ok());
  CHECK(made.entry("acme") == "s1 ACTIVE");
  CHECK(shards_of_parts(directory, "acme") == "s1 s1");
}

TEST_CASE("growth changes the shard of no object, wherever the parts are") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  REQUIRE(split_tenant(directory, "acme", 3).ok());
  move_entry(directory, "part:1:acme", "s2");
  auto before = routes_of(directory, "acme");
  for (const std::uint32_t parts : {6U, 12U, 1020U}) {
    CAPTURE(parts);
    const auto grown = split_tenant(directory, "acme", parts);
    REQUIRE_MESSAGE(grown.ok(), grown.status().message());
    CHECK(list_parts(directory, "acme").size() == parts);
    check_only_epochs_grew(directory, "acme", before);
    before = routes_of(directory, "acme");
    CHECK(made.epoch("acme") == *grown);
  }
  // And back, since no part was moved since.
  const auto merged = merge_tenant(directory, "acme", 3);
  REQUIRE_MESSAGE(merged.ok(), merged.status().message());
  check_only_epochs_grew(directory, "acme", before);
  CHECK(shards_of_parts(directory, "acme") == "s1 s2 s1");
}

TEST_CASE("parts merge where they are on one shard, and what remains has newer epochs than all") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  REQUIRE(split_tenant(directory, "acme", 4).ok());
  move_entry(directory, "part:1:acme", "s2");
  check_refused(merge_tenant(directory, "acme", 1), Code::conflict,
                "part 0 is on shard 's1' and part 1 on 's2'; legal is: move its parts");
  move_entry(directory, "part:3:acme", "s2");
  check_refused(merge_tenant(directory, "acme", 1), Code::conflict, "legal is: merge into 2");
  check_refused(merge_tenant(directory, "acme", 3), Code::conflict, "legal is: merge into 2");

  const auto before = routes_of(directory, "acme");
  const std::uint64_t newest = directory.version();
  const auto merged = merge_tenant(directory, "acme", 2);
  REQUIRE_MESSAGE(merged.ok(), merged.status().message());
  CHECK(shards_of_parts(directory, "acme") == "s1 s2");
  check_only_epochs_grew(directory, "acme", before);
  for (const TenantRow& part : list_parts(directory, "acme")) CHECK(part.epoch > newest);
  CHECK(made.entry("part:3:acme") == "nothing");
  CHECK(directory.db().integer("SELECT count(*) FROM directory_removed WHERE version > 0 AND "
                               "entry_id IN ('part:2:acme', 'part:3:acme')") == 2);

  move_entry(directory, "part:0:acme", "s2");
  const auto whole = merge_tenant(directory, "acme", 1);
  REQUIRE_MESSAGE(whole.ok(), whole.status().message());
  CHECK(made.entry("acme") == "s2 ACTIVE");
  CHECK(made.epoch("acme") == *whole);
  CHECK(*merge_tenant(directory, "acme", 1) == *whole);
  CHECK(list_parts(directory, "acme").empty());
  // A part of that number that comes again is newer than the one that left.
  REQUIRE(split_tenant(directory, "acme", 2).ok());
  CHECK(made.epoch("part:0:acme") > *whole);
  CHECK(directory.db().integer("SELECT count(*) FROM directory_removed WHERE entry_id IN "
                               "('part:0:acme', 'part:1:acme')") == 0);
}

TEST_CASE("what is not legal is refused, says what is, and changes nothing") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  REQUIRE(create_tenant(directory, "gone", "s1").ok());
  REQUIRE(delete_tenant(directory, "gone").ok());
  REQUIRE(create_tenant(directory, "plain", "s1").ok());
  REQUIRE(split_tenant(directory, "acme", 4).ok());
  const std::uint64_t before = directory.version();
  check_refused(split_tenant(directory, "acme", 6), Code::conflict,
                "is ACTIVE and has 4 parts; legal is: split into a multiple of 4, at most 1024");
  check_refused(split_tenant(directory, "acme", 2), Code::conflict, "tenant merge");
  check_refused(split_tenant(directory, "gone", 2), Code::conflict, "legal is: tenant create");
  check_refused(split_tenant(directory, "plain", 1), Code::refused, "from 2 to 1024");
  check_refused(split_tenant(directory, "plain", 1025), Code::refused, "from 2 to 1024");
  check_refused(split_tenant(directory, "bucket:0", 2), Code::refused, "reserved prefix");
  check_refused(split_tenant(directory, "part:0:acme", 2), Code::refused, "reserved prefix");
  check_refused(merge_tenant(directory, "acme", 8), Code::conflict, "legal is: merge into 1, 2");
  check_refused(merge_tenant(directory, "plain", 2), Code::conflict, "and not split");
  check_refused(merge_tenant(directory, "nobody", 1), Code::absent, "has no entry");
  check_refused(create_tenant(directory, "acme", "s1"), Code::conflict, "split into 4 parts");
  check_refused(forget_tenant(directory, "acme"), Code::refused, "tenant merge first");
  const auto whole = mark_move(directory, "acme", "s2", 15min, kMia);
  CHECK(whole.status().message().find("legal is: move its parts, 0 to 3") != std::string::npos);
  const auto beyond = mark_move(directory, "part:4:acme", "s2", 15min, kMia);
  CHECK(beyond.status().code() == Code::absent);
  CHECK(beyond.status().message() == "tenant 'acme' has parts 0 to 3, and no part 4");
  const auto unsplit = mark_move(directory, "part:0:plain", "s2", 15min, kMia);
  CHECK(unsplit.status().message() == "tenant 'plain' is not split");
  CHECK(directory.version() == before);
}

TEST_CASE("nothing is split, grown, merged or deleted while a part or what answers is moved") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  REQUIRE(split_tenant(directory, "acme", 4).ok());
  REQUIRE(create_tenant(directory, "whole", "s1").ok());
  REQUIRE(mark_move(directory, "part:2:acme", "s2", 15min, kMia).ok());
  REQUIRE(mark_move(directory, "whole", "s2", 15min, kMia).ok());
  REQUIRE(mark_move(directory, "bucket:0", "s2", 15min, kMia).ok());
  const std::uint64_t before = directory.version();
  const std::string moving = "part 2 of 'acme' is MIGRATING on shard 's1'";
  check_refused(split_tenant(directory, "acme", 8), Code::conflict, moving);
  check_refused(merge_tenant(directory, "acme", 1), Code::conflict, moving);
  check_refused(delete_tenant(directory, "acme"), Code::conflict, moving);
  check_refused(split_tenant(directory, "whole", 2), Code::conflict, "'whole' is MIGRATING");
  check_refused(split_tenant(directory, "other", 2), Code::conflict,
                "bucket:0 answers for 'other', and is MIGRATING");
  CHECK(directory.version() == before);
  // Another part is free to go.
  CHECK(mark_move(directory, "part:1:acme", "s2", 15min, kMia).ok());
}

TEST_CASE("a deleted tenant loses its parts where it is revived or purged, and not before") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  for (const char* id : {"again", "over"}) {
    REQUIRE(split_tenant(directory, id, 2).ok());
    move_entry(directory, part_entry_id(1, id), "s2");
    REQUIRE(delete_tenant(directory, id).ok());
    CHECK(list_parts(directory, id).size() == 2);
  }
  check_refused(merge_tenant(directory, "again", 1), Code::conflict, "which no object resolves by");
  REQUIRE(create_tenant(directory, "again", "s2").ok());
  CHECK(made.entry("again") == "s2 ACTIVE");
  CHECK(list_parts(directory, "again").empty());
  REQUIRE(purge_tenant(directory, "over", 0ms).ok());
  CHECK(directory.db().integer("SELECT count(*) FROM shard_directory WHERE entry_id LIKE "
                               "'part:%'") == 0);
  CHECK(directory.db().integer("SELECT count(*) FROM directory_split") == 0);
  CHECK(made.entry("over") == "nothing");
}

TEST_CASE("rebase lifts the epochs of a split and of its parts too") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  REQUIRE(split_tenant(directory, "acme", 2).ok());
  REQUIRE(rebase_directory(directory, 5'000).ok());
  CHECK(directory.db().integer("SELECT min(epoch) FROM directory_split") > 5'000);
  CHECK(made.epoch("part:0:acme") > 5'000);
}

TEST_CASE("plain SQL splits, grows and merges by directory_split, and breaks nothing") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  made.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('acme', 's1')");
  made.sql("INSERT INTO directory_split (entry_id, parts, epoch) VALUES ('acme', 2, 77)");
  CHECK(shards_of_parts(directory, "acme") == "s1 s1");
  made.sql("UPDATE shard_directory SET shard_id = 's2' WHERE entry_id = 'part:0:acme'");
  CHECK(made.entry("acme") == "s2 ACTIVE");
  made.sql("UPDATE directory_split SET parts = 6");
  CHECK(shards_of_parts(directory, "acme") == "s2 s1 s2 s1 s2 s1");
  CHECK(entry_history(directory, "acme")->back().note == "6 parts");
  made.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'part:5:acme'");

  struct Wrong {
    const char* sql;
    const char* because;
  };
  const Wrong wrongs[] = {
      {"UPDATE directory_split SET parts = 12", "a part is being moved"},
      {"DELETE FROM directory_split", "a part is being moved"},
      {"UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 'part:5:acme'; "
       "UPDATE directory_split SET parts = 4",
       "grow to a multiple"},
      {"DELETE FROM directory_split", "parts on different shards do not merge"},
      {"UPDATE directory_split SET parts = 3", "parts on different shards do not merge"},
      {"UPDATE directory_split SET parts = 3072", "CHECK constraint"},
      {"UPDATE directory_split SET entry_id = 'other'", "cannot be renamed"},
      {"UPDATE directory_split SET epoch = 1", "epoch is set by triggers"},
      {"INSERT OR REPLACE INTO directory_split (entry_id, parts) VALUES ('acme', 2)",
       "split already"},
      {"INSERT INTO directory_split (entry_id, parts) VALUES ('nobody', 2)", "ACTIVE entry"},
      {"INSERT INTO directory_split (entry_id, parts) VALUES ('bucket:0', 2)", "ACTIVE entry"},
      {"INSERT INTO directory_split (entry_id, parts) VALUES ('part:0:acme', 2)", "ACTIVE entry"},
      {"INSERT INTO shard_directory (entry_id, shard_id) VALUES ('part:6:acme', 's1')",
       "not split into so many"},
      {"INSERT INTO shard_directory (entry_id, shard_id) VALUES ('part:0:other', 's1')",
       "not split into so many"},
      {"DELETE FROM shard_directory WHERE entry_id = 'part:1:acme'", "cannot be DELETED"},
      {"INSERT INTO directory_removed (entry_id) VALUES ('part:1:acme')", "by merging only"},
      {"UPDATE shard_directory SET shard_id = 's1' WHERE entry_id = 'acme'", "tenant is split"},
      {"UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'acme'", "tenant is split"},
      {"INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('acme', 's1')",
       "tenant is split"},
  };
  for (const Wrong& wrong : wrongs) {
    CAPTURE(wrong.sql);
    CHECK_THROWS_WITH_AS(made.sql(wrong.sql), doctest::Contains(wrong.because), SqliteError);
  }
  // REPLACE of a part is a change like any other, and the tenant follows part 0.
  made.sql(
      "INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('part:0:acme', "
      "'s1'), ('part:2:acme', 's1'), ('part:4:acme', 's1')");
  CHECK(made.entry("acme") == "s1 ACTIVE");
  made.sql("DELETE FROM directory_split");
  CHECK(made.entry("acme") == "s1 ACTIVE");
  CHECK(entry_history(directory, "acme")->back().note == "not split");
  // Every version has its one row in history, whoever made it.
  CHECK(directory.db().integer("SELECT count(*) FROM directory_history") ==
        static_cast<std::int64_t>(directory.version()));
  made.sql("DELETE FROM shard_directory WHERE entry_id = 'acme'");
  CHECK_THROWS_WITH_AS(made.sql("INSERT INTO directory_split (entry_id, parts) VALUES ('acme', 2)"),
                       doctest::Contains("ACTIVE entry"), SqliteError);
}

TEST_CASE("the longest id can be split into the most parts") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  const std::string id(kIdBytesMax, 'x');
  REQUIRE(create_tenant(directory, id, "s1").ok());
  REQUIRE(split_tenant(directory, id, kPartsMax).ok());
  CHECK(list_parts(directory, id).size() == kPartsMax);
  move_entry(directory, part_entry_id(kPartsMax - 1, id), "s2");
  CHECK(made.entry(part_entry_id(kPartsMax - 1, id)) == "s2 ACTIVE");
}

TEST_CASE("the command splits, lists parts, moves one and merges, and says what is what") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  REQUIRE(create_tenant(directory, "acme", "s1").ok());
  const auto fingerpost = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--directory", made.path});
    return run_program(FINGERPOST_PROGRAM, arguments);
  };
  const Ran split = fingerpost({"tenant", "split", "acme", "--parts", "2"});
  CHECK(split.out == fmt::format("version {}\n", made.epoch("acme")));
  CHECK(fingerpost({"tenant", "split", "acme"}).status == 2);
  CHECK(fingerpost({"tenant", "split", "acme", "--parts", "3"}).status == 3);
  for (const char* step : {"mark", "freeze", "flip"}) {
    std::vector<std::string> arguments = {"move", step, "acme", "--part", "1", "--as", "mia"};
    if (std::string(step) == "mark") arguments.insert(arguments.end(), {"--to", "s2"});
    const Ran ran = fingerpost(arguments);
    CHECK_MESSAGE(ran.status == 0, ran.err);
  }
  const Ran parts = fingerpost({"tenant", "parts", "acme", "--json"});
  std::istringstream lines(parts.out);
  std::string line;
  for (const char* shard : {"s1", "s2"}) {
    REQUIRE(std::getline(lines, line));
    CHECK(nlohmann::json::parse(line)["shard"] == shard);
  }
  CHECK(fingerpost({"tenant", "parts", "nobody"}).status == 1);
  CHECK(nlohmann::json::parse(fingerpost({"tenant", "get", "acme", "--json"}).out)["parts"] == 2);
  CHECK(fingerpost({"tenant", "merge", "acme"}).status == 3);
  const Ran help = fingerpost({"tenant", "split", "--help"});
  CHECK(help.out.find("Without a check at the shard, FROZEN is advice") != std::string::npos);
}

}  // namespace fingerpost
