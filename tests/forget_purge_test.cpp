// How rows leave the table, and what an administrator says about versions: forget, purge, rebase,
// approve.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "shm/hash.h"
#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_epochs.h"
#include "tools/directory_history.h"
#include "tools/directory_moves.h"
#include "tools/directory_removals.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

bool says(const Status& status, const std::string& text) {
  CAPTURE(status.message());
  return status.message().find(text) != std::string::npos;
}

std::uint64_t floor_of(Directory& directory) {
  return static_cast<std::uint64_t>(
      directory.db().integer("SELECT replay_floor FROM directory_layout"));
}

std::uint64_t removed_at(Directory& directory, const std::string& id) {
  SqliteStatement select =
      directory.db().prepare("SELECT version FROM directory_removed WHERE entry_id = ?");
  return select.bind(id).step() ? select.number(0) : 0;
}

}  // namespace

TEST_CASE("forget removes an override where its bucket says the same, and only there") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  REQUIRE(create_tenant(directory, "same", "s1").ok());
  REQUIRE(create_tenant(directory, "other", "s2").ok());
  REQUIRE(create_tenant(directory, "gone", "s1").ok());
  REQUIRE(delete_tenant(directory, "gone").ok());
  const std::uint64_t before = directory.version();
  CHECK(says(forget_tenant(directory, "other").status(),
             "is on shard 's2', and would resolve to 's1' without its entry"));
  CHECK(says(forget_tenant(directory, "gone").status(), "is DELETED: tenant purge"));
  CHECK(forget_tenant(directory, "nobody").status().code() == Code::absent);
  CHECK(forget_tenant(directory, "bucket:0").status().code() == Code::refused);
  CHECK(directory.version() == before);

  const auto forgotten = forget_tenant(directory, "same");
  REQUIRE(forgotten.ok());
  CHECK(made.entry("same") == "nothing");
  CHECK(removed_at(directory, "same") == before + 1);
  // The bucket answers from then on, with an epoch above all that the override had.
  CHECK(made.epoch("bucket:0") == *forgotten);
  CHECK(*forgotten == before + 2);
  CHECK(entry_history(directory, "same")->back().verb == "tenant forget");
  CHECK(*forget_tenant(directory, "same") == *forgotten);

  REQUIRE(create_tenant(directory, "same", "s1").ok());
  CHECK(removed_at(directory, "same") == 0);
  CHECK(made.epoch("same") > *forgotten);
}

TEST_CASE("forget by hash re-stamps every route by hash, and needs a fallback") {
  MovingDirectory made;
  Directory& directory = made.with_hash();
  const std::string shard = placement_hash("t") % 2 == 0 ? "s1" : "s2";
  REQUIRE(create_tenant(directory, "t", shard).ok());
  const auto forgotten = forget_tenant(directory, "t");
  REQUIRE(forgotten.ok());
  CHECK(directory.db().integer("SELECT epoch FROM directory_layout") ==
        static_cast<std::int64_t>(*forgotten));
  MovingDirectory plain;
  REQUIRE(create_tenant(plain.without_fallback(), "t", "s1").ok());
  CHECK(says(forget_tenant(*plain.directory, "t").status(), "nothing but its entry answers"));
}

TEST_CASE("purge removes what has been DELETED for the retention, one or all") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  for (const char* id : {"a", "b", "c"}) {
    REQUIRE(create_tenant(directory, id, "s1").ok());
    if (std::string(id) != "c") REQUIRE(delete_tenant(directory, id).ok());
  }
  const std::uint64_t before = directory.version();
  CHECK(says(purge_tenant(directory, "c", 0ms).status(), "only what is DELETED is purged"));
  CHECK(says(purge_tenant(directory, "a", 24h).status(), "the retention is 1 d 0 h"));
  CHECK(purge_tenant(directory, "nobody", 0ms).status().code() == Code::absent);
  CHECK(purge_all(directory, 24h).purged == 0);
  CHECK(directory.version() == before);

  const auto purged = purge_tenant(directory, "a", 0ms);
  REQUIRE(purged.ok());
  CHECK(made.entry("a") == "nothing");
  CHECK(removed_at(directory, "a") == before + 1);
  CHECK(made.epoch(directory.bucket_of("a")) == *purged);
  CHECK(*purge_tenant(directory, "a", 0ms) == *purged);
  const PurgeReport all = purge_all(directory, 0ms);
  CHECK(all.purged == 1);
  CHECK(all.held == 0);
  CHECK(all.version == directory.version());
  CHECK(made.entry("b") == "nothing");
  CHECK(made.entry("c") == "s1 ACTIVE");
  CHECK(floor_of(directory) == 0);
}

TEST_CASE("removals older than the retention leave the list, and that raises the replay floor") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  for (const char* id : {"a", "b"}) {
    REQUIRE(create_tenant(directory, id, "s1").ok());
    REQUIRE(forget_tenant(directory, id).ok());
  }
  const std::uint64_t last = removed_at(directory, "b");
  CHECK(last > removed_at(directory, "a"));
  {
    DirectoryChange change(directory, "tenant purge");
    CHECK(drop_old_removals(directory, 1h) == 0);
    CHECK(floor_of(directory) == 0);
    CHECK(drop_old_removals(directory, 0ms) == 2);
    change.commit();
  }
  CHECK(floor_of(directory) == last);
  CHECK(forget_tenant(directory, "a").status().code() == Code::absent);
}

TEST_CASE("rebase lifts the counter above what was seen and gives every row an epoch above it") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  REQUIRE(create_tenant(directory, "t", "s1").ok());
  REQUIRE(mark_move(directory, "t", "s2", 15min, {}).ok());
  const std::uint64_t before = directory.version();
  CHECK(says(rebase_directory(directory, 5'000).status(), "1 moves are open; of 't', its move"));
  CHECK(rebase_directory(directory, std::uint64_t{1} << 63).status().code() == Code::refused);
  CHECK(directory.version() == before);
  REQUIRE(abort_move(directory, "t", {}).ok());
  for (const std::uint64_t above : {std::uint64_t{5'000}, std::uint64_t{7}}) {
    const std::uint64_t seen = std::max(above, directory.version());
    const auto rebased = rebase_directory(directory, above);
    REQUIRE(rebased.ok());
    const auto is_above = [&](const std::string& epochs) {
      return static_cast<std::uint64_t>(
                 directory.db().integer("SELECT min(epoch) FROM " + epochs)) > seen;
    };
    CHECK(is_above("shard_directory"));
    CHECK(is_above("shard_topology"));
    CHECK(is_above("directory_layout"));
    CHECK(directory.db().integer("SELECT topology_epoch FROM directory_layout") >
          static_cast<std::int64_t>(seen));
    CHECK(*rebased == directory.version());
    CHECK(made.entry("t") == "s1 ACTIVE");
  }
  const EntryChange last = entry_history(directory, "t")->back();
  CHECK(last.verb == "directory rebase");
  CHECK(last.note == "above 7");
  CHECK(last.before == last.after);
}

TEST_CASE("approve writes who let which version through, once, and none that is to come") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  const std::uint64_t version = directory.version();
  REQUIRE(approve_version(directory, version, "mia@h1").ok());
  REQUIRE(approve_version(directory, version, "bob@h2").ok());
  SqliteStatement select =
      directory.db().prepare("SELECT version, who FROM directory_approval ORDER BY version");
  REQUIRE(select.step());
  CHECK(select.number(0) == version);
  CHECK(select.text(1) == "mia@h1");
  CHECK_FALSE(select.step());
  CHECK(says(approve_version(directory, version + 1).status(), "is not there yet"));
  CHECK(directory.version() == version);
}

TEST_CASE("the command: exit statuses, versions and JSON") {
  ::unsetenv("FINGERPOST_DIRECTORY");
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  for (const char* id : {"a", "b", "c"}) REQUIRE(create_tenant(directory, id, "s1").ok());
  REQUIRE(delete_tenant(directory, "b").ok());
  REQUIRE(delete_tenant(directory, "c").ok());
  const auto fingerpost = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--directory", made.path});
    return run_program(FINGERPOST_PROGRAM, arguments);
  };
  const Ran forgotten = fingerpost({"tenant", "forget", "a"});
  CHECK(forgotten.out == fmt::format("version {}\n", directory.version()));
  CHECK(fingerpost({"tenant", "forget", "nobody"}).status == 1);
  CHECK(fingerpost({"tenant", "purge"}).status == 2);
  CHECK(fingerpost({"tenant", "purge", "b", "--all"}).status == 2);
  CHECK(fingerpost({"tenant", "purge", "b", "--retention", "soon"}).status == 2);
  CHECK(fingerpost({"tenant", "purge", "b"}).status == 3);
  const Ran purged = fingerpost({"tenant", "purge", "b", "--retention", "0", "--json"});
  CHECK(purged.out == fmt::format("{{\"version\":{}}}\n", directory.version()));
  const auto all = nlohmann::json::parse(
      fingerpost({"tenant", "purge", "--all", "--retention", "0", "--json"}).out);
  CHECK(all["purged"] == 1);
  CHECK(all["version"] == directory.version());
  const Ran approved = fingerpost({"approve", "3"});
  CHECK(approved.out == fmt::format("approved 3\nversion {}\n", directory.version()));
  CHECK(fingerpost({"approve", "999"}).status == 3);
  const Ran rebased = fingerpost({"directory", "rebase", "--above", "100000"});
  CHECK(rebased.out == fmt::format("version {}\n", directory.version()));
  CHECK(directory.version() > 100'000);
  CHECK(fingerpost({"directory", "rebase"}).status == 2);
}

}  // namespace fingerpost
