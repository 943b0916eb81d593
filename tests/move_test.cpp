// A move's steps: which is legal from where, for whom, and what a refusal says. Races and lost
// answers are in move_race_test.cpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "shm/hash.h"
#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_import.h"
#include "tools/directory_moves.h"
#include "tools/directory_removals.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

const Mover kMia{"mia@h1", {}};
const Mover kBob{"bob@h2", {}};

bool says(const Status& status, std::string_view text) {
  CAPTURE(status.message());
  const bool found = status.message().find(text) != std::string::npos;
  CHECK_MESSAGE(found, status.message(), " lacks: ", text);
  return found;
}

// By mia, to s2. The token.
std::string mark(MovingDirectory& made, const std::string& id) {
  const auto marked = mark_move(*made.directory, id, "s2", 15min, kMia);
  REQUIRE_MESSAGE(marked.ok(), marked.status().message());
  return marked->token;
}

// As if the time had come.
void pass_deadline(MovingDirectory& made, const std::string& id) {
  made.sql(
      "UPDATE directory_move SET deadline = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', "
      "'-1.000 seconds') WHERE entry_id = '" +
      id + "'");
}

Result<ImportReport> import_text(Directory& directory, const std::string& text) {
  auto input = std::make_shared<std::istringstream>(text);
  return import_directory(directory,
                          [input](char* bytes, std::size_t size) -> Result<std::size_t> {
                            input->read(bytes, static_cast<std::streamsize>(size));
                            return static_cast<std::size_t>(input->gcount());
                          },
                          {});
}

// What an entry can be when a verb meets it.
struct Place {
  const char* name;
  void (*bring)(MovingDirectory&);
  const char* legal;  // what a refusal names
  // What each verb makes of it, by mia, who owns the move if there is one; nullptr: refused.
  const char* mark;
  const char* freeze;
  const char* flip;
  const char* abort;
};

const Place kPlaces[] = {
    {"active", [](MovingDirectory& d) { REQUIRE(create_tenant(*d.directory, "t", "s1").ok()); },
     "legal is: mark", "s1 MIGRATING s2", nullptr, nullptr, nullptr},
    {"answered for by a bucket", [](MovingDirectory&) {}, "legal is: mark", "s1 MIGRATING s2",
     nullptr, nullptr, nullptr},
    {"marked", [](MovingDirectory& d) { mark(d, "t"); }, "legal is: freeze or abort by mia@h1",
     nullptr, "s1 FROZEN s2", nullptr, "s1 ACTIVE"},
    {"frozen",
     [](MovingDirectory& d) {
       mark(d, "t");
       REQUIRE(freeze_move(*d.directory, "t", kMia).ok());
     },
     "legal is: flip or abort by mia@h1", nullptr, "s1 FROZEN s2", "s2 ACTIVE", "s1 ACTIVE"},
    {"deleted",
     [](MovingDirectory& d) {
       REQUIRE(create_tenant(*d.directory, "t", "s1").ok());
       REQUIRE(delete_tenant(*d.directory, "t").ok());
     },
     "legal is: tenant create", nullptr, nullptr, nullptr, nullptr},
    {"migrating by plain SQL",
     [](MovingDirectory& d) {
       d.sql(
           "INSERT INTO shard_directory (entry_id, shard_id, state, target_shard) VALUES ('t', "
           "'s1', 'MIGRATING', 's2')");
     },
     "legal is: abort by anybody", nullptr, nullptr, nullptr, "s1 ACTIVE"},
    {"frozen by plain SQL",
     [](MovingDirectory& d) {
       d.sql(
           "INSERT INTO shard_directory (entry_id, shard_id, state) VALUES ('t', 's1', 'FROZEN')");
     },
     "legal is: abort by anybody", nullptr, nullptr, nullptr, "s1 ACTIVE"},
    {"marked, then frozen by plain SQL",
     [](MovingDirectory& d) {
       mark(d, "t");
       d.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't'");
     },
     "legal is: abort by mia@h1", nullptr, nullptr, nullptr, "s1 ACTIVE"},
    {"frozen, then moved by plain SQL",
     [](MovingDirectory& d) {
       mark(d, "t");
       REQUIRE(freeze_move(*d.directory, "t", kMia).ok());
       d.sql(
           "UPDATE shard_directory SET shard_id = 's2', state = 'ACTIVE', target_shard = NULL "
           "WHERE entry_id = 't'");
     },
     "legal is: abort by mia@h1", nullptr, nullptr, nullptr, "s2 ACTIVE"},
    {"marked, then deleted by plain SQL",
     [](MovingDirectory& d) {
       mark(d, "t");
       d.sql("DELETE FROM shard_directory WHERE entry_id = 't'");
     },
     "legal is: abort by mia@h1", nullptr, nullptr, nullptr, "s1 DELETED"},
};

struct Verb {
  const char* name;
  Result<MoveStep> (*run)(Directory&, const Mover&);
  const char* Place::*makes;
};

const Verb kVerbs[] = {
    {"mark", [](Directory& d, const Mover& m) { return mark_move(d, "t", "s2", 15min, m); },
     &Place::mark},
    {"freeze", [](Directory& d, const Mover& m) { return freeze_move(d, "t", m); }, &Place::freeze},
    {"flip", [](Directory& d, const Mover& m) { return flip_move(d, "t", m); }, &Place::flip},
    {"abort", [](Directory& d, const Mover& m) { return abort_move(d, "t", m); }, &Place::abort},
};

}  // namespace

TEST_CASE("every verb is done where it is legal, and everywhere else refused with what is legal") {
  for (const Place& place : kPlaces) {
    for (const Verb& verb : kVerbs) {
      CAPTURE(std::string(place.name));
      CAPTURE(std::string(verb.name));
      MovingDirectory made("/dev/shm");
      Directory& directory = made.with_buckets(4);
      place.bring(made);
      const std::string entry = made.entry("t");
      const std::uint64_t version = directory.version();
      const auto done = verb.run(directory, kMia);
      if (place.*verb.makes != nullptr) {
        CHECK_MESSAGE(done.ok(), done.status().message());
        CHECK(made.entry("t") == place.*verb.makes);
        continue;
      }
      REQUIRE_FALSE(done.ok());
      CHECK(done.status().code() == Code::conflict);
      says(done.status(), fmt::format("move {} of 't' is refused", verb.name));
      says(done.status(), place.legal);
      CHECK(made.entry("t") == entry);
      CHECK(directory.version() == version);
      CHECK(directory.db().integer("SELECT count(*) FROM directory_session") == 0);
    }
  }
}

TEST_CASE("who neither owns a move nor brings its token is refused until the deadline") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  const std::string token = mark(made, "t");
  CHECK(token.size() == 32);
  REQUIRE(freeze_move(directory, "t", kBob).ok() == false);
  const Mover holder{"bob@h2", token};
  REQUIRE(freeze_move(directory, "t", holder).ok());
  const Mover wrong{"mia@h1", std::string(32, '0')};
  for (const Mover& stranger : {kBob, wrong}) {
    for (const auto& step : {freeze_move, flip_move, abort_move}) {
      const auto refused = step(directory, "t", stranger);
      REQUIRE_FALSE(refused.ok());
      says(refused.status(), stranger.token.empty() ? "bob@h2 neither owns the move nor brought"
                                                    : "no move has this token");
      says(refused.status(), "(owner mia@h1, since ");
    }
  }
  CHECK(made.entry("t") == "s1 FROZEN s2");
  pass_deadline(made, "t");
  CHECK_FALSE(flip_move(directory, "t", kBob).ok());
  says(freeze_move(directory, "t", kBob).status(), "abort by anybody, since it is overdue");
  CHECK(made.entry("t") == "s1 FROZEN s2");  // the deadline alone ends nothing
  // A wrong token is a mistake, whatever the time.
  CHECK_FALSE(abort_move(directory, "t", wrong).ok());
  REQUIRE(abort_move(directory, "t", kBob).ok());
  CHECK(made.entry("t") == "s1 ACTIVE");
  says(flip_move(directory, "t", holder).status(), "was aborted at version");
}

TEST_CASE("who holds the token may flip after the deadline, as long as nobody aborted") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  mark(made, "t");
  pass_deadline(made, "t");
  REQUIRE(freeze_move(directory, "t", kMia).ok());
  REQUIRE(flip_move(directory, "t", kMia).ok());
  CHECK(made.entry("t") == "s2 ACTIVE");
  CHECK(reap_moves(directory).moves.empty());
}

TEST_CASE("a repeat with the token is done already, at the version of the first time") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  const auto marked = mark_move(directory, "t", "s2", 15min, kMia);
  REQUIRE(marked.ok());
  const Mover holder{"cron@h3", marked->token};
  CHECK(mark_move(directory, "t", "s2", 15min, holder)->version == marked->version);
  CHECK(mark_move(directory, "t", "s2", 15min, holder)->token == marked->token);
  says(mark_move(directory, "t", "s1", 15min, holder).status(), "does not go to 's1'");
  const auto frozen = freeze_move(directory, "t", holder);
  REQUIRE(frozen.ok());
  CHECK(frozen->version == marked->version + 1);
  REQUIRE(create_tenant(directory, "other", "s1").ok());  // the directory goes on
  CHECK(freeze_move(directory, "t", holder)->version == frozen->version);
  CHECK(mark_move(directory, "t", "s2", 15min, holder)->version == marked->version);
  const auto flipped = flip_move(directory, "t", holder);
  REQUIRE(flipped.ok());
  CHECK(flip_move(directory, "t", holder)->version == flipped->version);
  says(mark_move(directory, "t", "s1", 15min, holder).status(), "was flipped at version");
  says(abort_move(directory, "t", holder).status(), "was flipped at version");
  // The token of one move is of no use for another, nor for another's entry.
  const std::string other = mark(made, "u");
  says(freeze_move(directory, "u", holder).status(), "was flipped at version");
  says(flip_move(directory, "t", {"x", other}).status(), "that of the move of 'u'");
  const auto aborted = abort_move(directory, "u", kMia);
  CHECK(abort_move(directory, "u", {"x", other})->version == aborted->version);
  says(mark_move(directory, "v", "s2", 15min, {"x", "77"}).status(), "no move has this token");
  CHECK(made.entry("v") == "nothing");
}

TEST_CASE("an override starts where its id resolved to, in the transaction that marks it") {
  SUBCASE("by a bucket") {
    MovingDirectory made;
    Directory& directory = made.with_buckets(4);
    const std::uint64_t before = directory.version();
    const auto marked = mark_move(directory, "t", "s2", 15min, kMia);
    REQUIRE(marked.ok());
    CHECK(marked->version == before + 1);
    CHECK(made.entry("t") == "s1 MIGRATING s2");
    says(mark_move(directory, "u", "s1", 15min, kMia).status(), "on shard 's1' already");
    says(mark_move(directory, "u", "s9", 15min, kMia).status(), "there is no shard 's9'");
    CHECK(made.entry("u") == "nothing");
  }
  SUBCASE("by hash") {
    MovingDirectory made;
    Directory& directory = made.with_hash();
    const bool first = placement_hash("t") % 2 == 0;
    REQUIRE(mark_move(directory, "t", first ? "s2" : "s1", 15min, kMia).ok());
    CHECK(made.entry("t") == (first ? "s1 MIGRATING s2" : "s2 MIGRATING s1"));
  }
  SUBCASE("by nothing") {
    MovingDirectory made;
    Directory& directory = made.without_fallback();
    for (const Verb& verb : kVerbs) {
      CHECK(verb.run(directory, kMia).status().code() == Code::absent);
    }
    CHECK(mark_move(directory, "bucket:0", "s2", 15min, kMia).status().code() == Code::refused);
    CHECK(mark_move(directory, "part:1:t", "s2", 15min, kMia).status().code() == Code::absent);
    CHECK(mark_move(directory, "a\nb", "s2", 15min, kMia).status().code() == Code::refused);
  }
}

TEST_CASE("a bucket moves as a tenant does") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  mark(made, "bucket:3");
  CHECK(made.entry("bucket:3") == "s1 MIGRATING s2");
  REQUIRE(freeze_move(directory, "bucket:3", kMia).ok());
  const auto flipped = flip_move(directory, "bucket:3", kMia);
  REQUIRE(flipped.ok());
  CHECK(made.entry("bucket:3") == "s2 ACTIVE");
  CHECK(made.epoch("bucket:3") == flipped->version);
  says(mark_move(directory, "bucket:4", "s2", 15min, kMia).status(), "has 4 buckets");
}

TEST_CASE("while a bucket moves, nothing changes which rule an id of it resolves by") {
  for (const bool frozen : {false, true}) {
    MovingDirectory made("/dev/shm");
    Directory& directory = made.with_buckets(1);
    REQUIRE(create_tenant(directory, "own", "s1").ok());
    REQUIRE(create_tenant(directory, "gone", "s1").ok());
    REQUIRE(delete_tenant(directory, "gone").ok());
    mark(made, "bucket:0");
    if (frozen) REQUIRE(freeze_move(directory, "bucket:0", kMia).ok());
    const std::uint64_t version = directory.version();
    const std::string named = frozen ? "from shard 's1' to 's2' is frozen (owner mia@h1"
                                     : "from shard 's1' to 's2' is marked (owner mia@h1";
    const auto refused = [&](const Status& status) {
      CHECK(status.code() == Code::conflict);
      says(status, "bucket:0 answers for ");
      says(status, named);
      CHECK(directory.version() == version);
    };
    refused(create_tenant(directory, "new", "s1").status());
    refused(delete_tenant(directory, "new").status());
    refused(mark_move(directory, "new", "s2", 15min, kMia).status());
    refused(forget_tenant(directory, "own").status());
    refused(purge_tenant(directory, "gone", 0ms).status());
    const PurgeReport all = purge_all(directory, 0ms);
    CHECK(all.purged == 0);
    CHECK(all.held == 1);
    const auto imported = import_text(directory, "entry_id,shard_id\nnew,s1\n");
    REQUIRE(imported.ok());
    REQUIRE(imported->faults.size() == 1);
    CHECK(imported->faults[0].message.find(named) != std::string::npos);
    CHECK(directory.version() == version);
    // What has an entry of its own does not resolve by the bucket.
    CHECK(create_tenant(directory, "gone", "s2").ok());
    CHECK(mark_move(directory, "own", "s2", 15min, kMia).ok());

    REQUIRE(abort_move(directory, "bucket:0", kMia).ok());
    CHECK(create_tenant(directory, "new", "s1").ok());
  }
}

TEST_CASE("a moving tenant is neither deleted, revived, forgotten nor purged") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  mark(made, "t");
  for (const Status& status :
       {delete_tenant(directory, "t").status(), create_tenant(directory, "t", "s1").status(),
        forget_tenant(directory, "t").status()}) {
    CHECK(status.code() == Code::conflict);
    says(status, "its move from shard 's1' to 's2' is marked");
  }
  made.sql("DELETE FROM shard_directory WHERE entry_id = 't'");
  for (const Status& status :
       {create_tenant(directory, "t", "s2").status(), purge_tenant(directory, "t", 0ms).status()}) {
    says(status, "its move from shard 's1' to 's2' is marked");
  }
}

TEST_CASE("reap aborts what is past its deadline and nothing else, and says what it did") {
  MovingDirectory made;
  Directory& directory = made.with_buckets(4);
  mark(made, "late");
  const std::string token = mark(made, "later");
  REQUIRE(freeze_move(directory, "later", kMia).ok());
  mark(made, "in time");
  pass_deadline(made, "late");
  pass_deadline(made, "later");
  const std::vector<MoveRow> open = list_moves(directory);
  REQUIRE(open.size() == 3);
  CHECK(open[0].entry == "late");
  CHECK(open[0].overdue());
  CHECK(open[1].step == "frozen");
  CHECK_FALSE(open[1].frozen_at.empty());
  CHECK_FALSE(open[2].overdue());
  const Reaped reaped = reap_moves(directory, "cron@h3");
  REQUIRE(reaped.moves.size() == 2);
  CHECK(reaped.version == directory.version());
  CHECK(made.entry("late") == "s1 ACTIVE");
  CHECK(made.entry("later") == "s1 ACTIVE");
  CHECK(made.entry("in time") == "s1 MIGRATING s2");
  CHECK(directory.db().integer("SELECT count(*) FROM directory_history WHERE verb = 'move reap' "
                               "AND who = 'cron@h3'") == 2);
  says(flip_move(directory, "later", {"mia@h1", token}).status(), "was aborted at version");
  const Reaped again = reap_moves(directory);
  CHECK(again.moves.empty());
  CHECK(again.version == reaped.version);
}

TEST_CASE("the command: tokens, versions, JSON and exit statuses, and the warning in every help") {
  ::unsetenv("FINGERPOST_DIRECTORY");
  MovingDirectory made;
  made.with_buckets(4);
  const auto fingerpost = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--directory", made.path});
    return run_program(FINGERPOST_PROGRAM, arguments);
  };
  const Ran marked = fingerpost({"move", "mark", "t", "--to", "s2", "--as", "mia"});
  CHECK(marked.status == 0);
  REQUIRE(marked.out.starts_with("token "));
  const std::string token = marked.out.substr(6, 32);
  CHECK(marked.out.ends_with(fmt::format("\nversion {}\n", made.directory->version())));
  CHECK(fingerpost({"move", "mark", "t", "--to", "s2", "--token", token}).out == marked.out);
  CHECK(fingerpost({"move", "mark", "t", "--to", "s2"}).status == 3);
  CHECK(fingerpost({"move", "freeze", "t"}).status == 3);
  CHECK(fingerpost({"move", "freeze", "nobody"}).status == 3);
  CHECK(fingerpost({"move", "mark", "t"}).status == 2);
  CHECK(fingerpost({"move", "mark", "t", "--to", "s2", "--deadline", "soon"}).status == 2);
  const Ran frozen = fingerpost({"move", "freeze", "t", "--as", "mia", "--json"});
  CHECK(nlohmann::json::parse(frozen.out)["version"] == made.directory->version());
  const auto listed = nlohmann::json::parse(fingerpost({"move", "list", "--json"}).out);
  CHECK(listed["id"] == "t");
  CHECK(listed["step"] == "frozen");
  CHECK(listed["owner"] == "mia");
  CHECK(listed["overdue"] == false);
  CHECK(listed["since"].get<std::string>() < listed["deadline"].get<std::string>());
  CHECK(listed.dump().find(token) == std::string::npos);
  const Ran flipped = fingerpost({"move", "flip", "t", "--token", token});
  CHECK(flipped.status == 0);
  CHECK(flipped.out == fmt::format("version {}\n", made.directory->version()));
  CHECK(fingerpost({"move", "flip", "t", "--token", token}).out == flipped.out);
  CHECK(fingerpost({"move", "reap"}).out.starts_with("no move is overdue\nversion "));
  for (const char* verb : {"mark", "freeze", "flip", "abort", "list", "reap"}) {
    CAPTURE(std::string(verb));
    const std::string help = run_program(FINGERPOST_PROGRAM, {"move", verb, "--help"}).out;
    CHECK(help.find(std::string(kMoveWarning)) != std::string::npos);
    CHECK(help.find("Example:") != std::string::npos);
  }
}

}  // namespace fingerpost
