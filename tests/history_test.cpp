// What `fingerpost history` knows of an entry.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_history.h"
#include "tools/directory_moves.h"
#include "tools/directory_removals.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

const Mover kMia{"mia@h1", {}};

void move_to(Directory& directory, const std::string& id, const std::string& to) {
  REQUIRE(mark_move(directory, id, to, 15min, kMia).ok());
  REQUIRE(freeze_move(directory, id, kMia).ok());
  REQUIRE(flip_move(directory, id, kMia).ok());
}

}  // namespace

TEST_CASE(
    "history says who moved an entry when, from where, by which verb, and how long it froze") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  REQUIRE(create_tenant(directory, "t", "s1").ok());
  const std::uint64_t created = directory.version();
  REQUIRE(mark_move(directory, "t", "s2", 15min, kMia).ok());
  REQUIRE(freeze_move(directory, "t", kMia).ok());
  std::this_thread::sleep_for(30ms);
  REQUIRE(flip_move(directory, "t", kMia).ok());
  made.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't'");
  const auto found = entry_history(directory, "t");
  REQUIRE(found.ok());
  const std::vector<EntryChange>& changes = *found;
  REQUIRE(changes.size() == 5);
  CHECK(changes[0].before == EntryImage{});
  CHECK(changes[0].after == EntryImage{"s1", "ACTIVE", ""});
  CHECK(changes[0].verb == "tenant create");
  CHECK(changes[0].who == this_user());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CHECK(changes[i].version == created + i);
    CHECK(changes[i].at.size() == 24);
    if (i > 0) CHECK(changes[i].before == changes[i - 1].after);
  }
  CHECK(changes[1].after == EntryImage{"s1", "MIGRATING", "s2"});
  CHECK(changes[2].after == EntryImage{"s1", "FROZEN", "s2"});
  CHECK(changes[3].after == EntryImage{"s2", "ACTIVE", ""});
  CHECK(changes[3].verb == "move flip");
  CHECK(changes[3].who == "mia@h1");
  REQUIRE(changes[3].frozen_ms);
  CHECK(*changes[3].frozen_ms >= 30);
  CHECK(*changes[3].frozen_ms < 60'000);
  CHECK_FALSE(changes[2].frozen_ms);
  CHECK(changes[4].verb.empty());
  CHECK(changes[4].who.empty());
}

TEST_CASE("at every version an entry is what it was then") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  std::vector<std::string> was(directory.version() + 1, "nothing");
  const auto remember = [&] { was.resize(directory.version() + 1, made.entry("t")); };
  REQUIRE(create_tenant(directory, "t", "s1").ok());
  remember();
  move_to(directory, "t", "s2");
  was.resize(was.size() + 1, "s1 MIGRATING s2");
  was.resize(was.size() + 1, "s1 FROZEN s2");
  remember();
  move_to(directory, "bucket:0", "s2");
  remember();
  REQUIRE(forget_tenant(directory, "t").ok());
  remember();
  REQUIRE(create_tenant(directory, "t", "s1").ok());
  remember();
  for (std::uint64_t version = 0; version < was.size(); ++version) {
    CAPTURE(version);
    const auto found = entry_at(directory, "t", version);
    REQUIRE(found.ok());
    std::string text = "nothing";
    if (*found && (*found)->after != EntryImage{}) {
      const EntryImage& image = (*found)->after;
      text = image.shard + " " + image.state + (image.target.empty() ? "" : " " + image.target);
    }
    CHECK(text == was[version]);
  }
  CHECK(entry_at(directory, "t", was.size()).status().code() == Code::refused);
  CHECK(entry_at(directory, "a\nb", 1).status().code() == Code::refused);
  CHECK(entry_history(directory, "nobody")->empty());
}

TEST_CASE("the command answers in lines or JSON, and says no where there was nothing") {
  ::unsetenv("FINGERPOST_DIRECTORY");
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  move_to(directory, "t", "s2");
  const std::uint64_t flipped = directory.version();
  const auto history = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "history");
    arguments.insert(arguments.end(), {"--directory", made.path});
    return run_program(FINGERPOST_PROGRAM, arguments);
  };
  const Ran lines = history({"t"});
  CHECK(lines.status == 0);
  CHECK(lines.out.find("nothing -> s1 MIGRATING to s2\tmove mark\tmia@h1\n") != std::string::npos);
  CHECK(lines.out.find("s1 FROZEN to s2 -> s2 ACTIVE\tmove flip\tmia@h1\tfrozen for ") !=
        std::string::npos);
  const std::string json = history({"t", "--json"}).out;
  const auto last = nlohmann::json::parse(json.substr(json.rfind('\n', json.size() - 2) + 1));
  CHECK(last["version"] == flipped);
  CHECK(last["before"]["state"] == "FROZEN");
  CHECK(last["after"]["shard"] == "s2");
  CHECK(last["frozen_ms"].is_number());
  const std::string before = std::to_string(flipped - 1);
  CHECK(history({"t", "--at", before}).out.starts_with("t\ts1\tFROZEN\ts2\t" + before + "\t"));
  CHECK(nlohmann::json::parse(history({"t", "--at", before, "--json"}).out)["target"] == "s2");
  const Ran nothing = history({"t", "--at", "1"});
  CHECK(nothing.status == 1);
  CHECK(nothing.err.find("'t' had no entry at version 1; bucket:0 answers") != std::string::npos);
  CHECK(history({"nobody"}).status == 1);
  CHECK(history({"t", "--at", "9999"}).status == 3);
  CHECK(history({"t", "--at", "soon"}).status == 2);
}

}  // namespace fingerpost
