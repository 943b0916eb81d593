// The fingerpost command itself: what it answers, where, and what it exits with.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "syncer/sqlite_db.h"
#include "tests/run_program.h"

namespace fingerpost {
namespace {

struct Fixture {
  TempFolder folder;
  std::string path = folder.file("directory.db");

  Fixture() { ::unsetenv("FINGERPOST_DIRECTORY"); }

  Ran fingerpost(std::vector<std::string> arguments, const std::string& input = {}) const {
    arguments.insert(arguments.end(), {"--directory", "sqlite:" + path});
    return run_program(FINGERPOST_PROGRAM, arguments, input);
  }
  void make() const {
    REQUIRE(fingerpost({"init", "--buckets", "8"}).status == 0);
    REQUIRE(fingerpost({"shard", "add", "s1", "--primary", "db1:5432"}).status == 0);
    REQUIRE(fingerpost({"shard", "add", "s2", "--weight", "200"}).status == 0);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "0: every verb answers on stdout and prints the version that it committed") {
  const Ran made = fingerpost({"init", "--buckets", "8"});
  CHECK(made.status == 0);
  CHECK(made.out.find("\nversion 1\n") != std::string::npos);
  CHECK(made.err.empty());
  CHECK(fingerpost({"shard", "add", "s1", "--primary", "db1:1", "--replica", "db2:1", "--replica",
                    "db3:1", "--region", "eu", "--weight", "50", "--attr", "tier=gold"})
            .out == "version 2\n");
  CHECK(fingerpost({"shard", "set", "s1", "--primary", "db2:1", "--json"}).out ==
        "{\"version\":3}\n");
  const auto shard = nlohmann::json::parse(fingerpost({"shard", "list", "--json"}).out);
  CHECK(shard == nlohmann::json::parse(
                     R"({"shard":"s1","primary":"db2:1","replicas":["db2:1","db3:1"],"region":"eu",
                                           "weight":50,"attributes":{"tier":"gold"},"tenants":0,"load":null,"reported_at":null,"epoch":3})"));
  CHECK(fingerpost({"bucket", "assign"}).out == "assigned 8\nversion 11\n");
  CHECK(fingerpost({"bucket", "list"}).out.starts_with("0\ts1\tACTIVE\t\t4\n1\ts1\tACTIVE\t\t5\n"));
  CHECK(fingerpost({"tenant", "create", "acme", "--shard", "s1"}).out == "shard s1\nversion 12\n");
  CHECK(fingerpost({"tenant", "create", "acme", "--shard", "s1"}).out == "shard s1\nversion 12\n");
  const auto tenant = nlohmann::json::parse(fingerpost({"tenant", "get", "acme", "--json"}).out);
  CHECK(tenant["shard"] == "s1");
  CHECK(tenant["epoch"] == 12);
  CHECK(tenant["target"].is_null());
  CHECK(fingerpost({"import", "-"}, "entry_id,shard_id\nb,s1\nc,s1\n").out ==
        "inserted 2, 0 in the directory already\nversion 14\n");
  CHECK(fingerpost({"tenant", "list", "--after", "acme", "--limit", "1"})
            .out.starts_with("b\ts1\tACTIVE\t\t13\t"));
  CHECK(fingerpost({"tenant", "delete", "b"}).out == "version 15\n");
  const std::string told = fingerpost({"tenant", "delete", "nobody"}).out;
  CHECK(told.starts_with("'nobody' had no entry, bucket:"));
  CHECK(told.ends_with(" answered for it, shard s1: it has one now, DELETED\nversion 16\n"));
  CHECK(fingerpost({"shard", "add", "s2"}).out == "version 17\n");
  CHECK(fingerpost({"shard", "remove", "s2"}).out == "version 18\n");
}

TEST_CASE_FIXTURE(Fixture, "1: a definite no, and of several ids the worst decides") {
  make();
  REQUIRE(fingerpost({"tenant", "create", "acme", "--shard", "s1"}).status == 0);
  const Ran unknown = fingerpost({"tenant", "get", "nobody"});
  CHECK(unknown.status == 1);
  CHECK(unknown.out.empty());
  CHECK(unknown.err.find("'nobody' has no entry of its own; bucket:") != std::string::npos);
  const Ran some = fingerpost({"tenant", "get", "nobody", "acme"});
  CHECK(some.status == 1);
  CHECK(some.out.starts_with("acme\ts1\t"));
  CHECK(fingerpost({"tenant", "get", "nobody", "bucket:1", "acme"}).status == 3);
  CHECK(fingerpost({"tenant", "delete", "nobody"}).status == 1);
  CHECK(fingerpost({"shard", "set", "s9", "--weight", "1"}).status == 1);
  CHECK(fingerpost({"shard", "remove", "s9"}).status == 1);
}

TEST_CASE_FIXTURE(Fixture, "2: a command line that makes no sense, and nothing is done") {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"no-such-verb"},
                                             {"tenant"},
                                             {"tenant", "split", "acme"},
                                             {"init", "--buckets", "0"},
                                             {"init", "--buckets", "many"},
                                             {"init", "--buckets", "8", "--fallback", "hash"},
                                             {"init", "--fallback", "hash"},
                                             {"init", "--buckets", "8", "--fallback", "none"},
                                             {"init", "--hash-shards", "a,b"},
                                             {"shard", "add", "s1", "--weight", "-1"},
                                             {"bucket", "assign", "--range", "7"},
                                             {"tenant", "list", "--limit", "0"}}) {
    std::string typed;
    for (const std::string& argument : arguments) typed += argument + " ";
    CAPTURE(typed);
    const Ran ran = arguments.empty() ? run_program(FINGERPOST_PROGRAM, {}) : fingerpost(arguments);
    CHECK(ran.status == 2);
    CHECK(ran.out.empty());
    CHECK_FALSE(ran.err.empty());
  }
  CHECK(run_program(FINGERPOST_PROGRAM, {"tenant", "list"}).status == 2);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE_FIXTURE(Fixture, "2: a mistyped verb is named, and a number below zero with its option") {
  make();
  const auto says = [&](std::vector<std::string> arguments, const std::string& what) {
    const Ran ran = fingerpost(std::move(arguments));
    CHECK(ran.status == 2);
    CHECK_MESSAGE(ran.err.find(what) != std::string::npos, ran.err);
  };
  says({"tenat", "list"}, "'tenat' is no verb of fingerpost, which has: init ");
  says({"tenant", "craete", "acme"}, "'craete' is no verb of tenant, which has: create ");
  const std::string minus = ": '-1' is no whole number from ";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"approve", "VERSION"},
                                             {"directory", "rebase", "--above"},
                                             {"wait", "orders", "--version"},
                                             {"wait", "orders", "--newer", "acme", "--epoch"},
                                             {"history", "acme", "--at"},
                                             {"tenant", "list", "--limit"},
                                             {"tenant", "split", "acme", "--parts"},
                                             {"move", "flip", "acme", "--part"},
                                             {"shard", "add", "s9", "--weight"},
                                             {"init", "--buckets"},
                                             {"size", "--tenants"},
                                             {"size", "--tenants", "1", "--id-bytes"},
                                             {"size", "--tenants", "1", "--workers"},
                                             {"size", "--tenants", "1", "--buckets"},
                                             {"size", "--tenants", "1", "--capacity"}}) {
    std::vector<std::string> typed = arguments;
    if (typed.back() == "VERSION") typed.pop_back();
    typed.emplace_back("-1");
    says(typed, arguments.back() + minus);
    if (!arguments.back().starts_with("--")) continue;
    typed.pop_back();
    typed.back() += "=99999999999999999999";  // beyond 64 bits
    says(typed, arguments.back() + ": '99999999999999999999' is no whole number from ");
  }
  says({"shard", "report", "s1", "--load", "-0.5"}, "--load: '-0.5' is below 0");
  says({"wait", "orders", "--version", "1", "--timeout", "-5s"}, "--timeout: '-5s' is no duration");
  says({"tenant", "list", "--limit", "0"}, "--limit: '0' is no whole number from 1 to ");
  const Ran id =
      run_program(FINGERPOST_PROGRAM, {"tenant", "get", "--directory", path, "--", "-5"});
  CHECK(id.status == 1);  // an id is no number
}

TEST_CASE_FIXTURE(Fixture, "3: refused input says what was wrong and changes nothing") {
  make();
  REQUIRE(fingerpost({"tenant", "create", "acme", "--shard", "s1"}).status == 0);
  CHECK(fingerpost({"init"}).status == 3);
  CHECK(fingerpost({"tenant", "create", "acme", "--shard", "s2"}).status == 3);
  CHECK(fingerpost({"tenant", "create", "a\nb", "--shard", "s2"}).err ==
        "fingerpost: tenant id 'a\\x0ab' holds a control character\n");
  CHECK(fingerpost({"tenant", "create", "x'; DROP TABLE shard_directory; --", "--shard", "s1"})
            .status == 0);
  CHECK(fingerpost({"shard", "set", "s1", "--primary", "u:secret@db"}).status == 3);
  CHECK(fingerpost({"shard", "remove", "s1"}).status == 3);
  const Ran absent = fingerpost({"import", folder.file("absent.csv")});
  CHECK(absent.status == 3);
  CHECK(absent.err.find("cannot import " + folder.file("absent.csv") + ": No such file") !=
        std::string::npos);
  const Ran directory = fingerpost({"import", folder.path()});
  CHECK(directory.status == 3);
  CHECK(directory.err == "fingerpost: cannot import " + folder.path() + ": it is a folder\n");
  const Ran faults = fingerpost({"import", "-"}, "entry_id,shard_id\nacme,s2\nx,s9\n");
  CHECK(faults.status == 3);
  CHECK(faults.out.empty());
  CHECK(faults.err.starts_with("line 2: entry_id 'acme' exists"));
  CHECK(faults.err.ends_with("fingerpost: 2 faults in 2 rows; nothing was applied\n"));
  const auto listed =
      nlohmann::json::parse(fingerpost({"import", "-", "--json"}, "entry_id,shard_id\nx,s9\n").err);
  CHECK(listed["faults"][0]["line"] == 2);
  CHECK(fingerpost({"tenant", "list"}).out.find("acme\ts1") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "4: a directory that is not there, not permitted, or locked") {
  const Ran absent = fingerpost({"tenant", "list"});
  CHECK(absent.status == 4);
  CHECK(absent.err == "fingerpost: " + path + ": no such file\n");
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(run_program(FINGERPOST_PROGRAM, {"tenant", "list", "--directory", folder.path()}).err ==
        "fingerpost: " + folder.path() + ": is a folder\n");
  make();
  SqliteDb other(path, SqliteDb::Mode::read_write);
  const SqliteTransaction held(other, SqliteTransaction::Kind::write);
  const Ran locked = fingerpost({"tenant", "create", "x", "--shard", "s1", "--json"});
  CHECK(locked.status == 4);
  CHECK(nlohmann::json::parse(locked.err)["code"] == "busy");
  CHECK(fingerpost({"shard", "list"}).status == 0);  // reading goes on
}

TEST_CASE_FIXTURE(Fixture, "the environment may name the directory, and help names everything") {
  make();
  ::setenv("FINGERPOST_DIRECTORY", path.c_str(), 1);
  CHECK(run_program(FINGERPOST_PROGRAM, {"shard", "list"}).status == 0);
  ::unsetenv("FINGERPOST_DIRECTORY");
  const Ran help = run_program(FINGERPOST_PROGRAM, {"--help"});
  CHECK(help.status == 0);
  CHECK(help.out.find("Exit status: 0") != std::string::npos);
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"init"},
                                             {"shard", "add"},
                                             {"shard", "set"},
                                             {"shard", "list"},
                                             {"shard", "report"},
                                             {"shard", "remove"},
                                             {"bucket", "assign"},
                                             {"bucket", "list"},
                                             {"tenant", "create"},
                                             {"tenant", "get"},
                                             {"tenant", "list"},
                                             {"tenant", "delete"},
                                             {"tenant", "split"},
                                             {"tenant", "merge"},
                                             {"tenant", "parts"},
                                             {"tenant", "pin"},
                                             {"tenant", "unpin"},
                                             {"tenant", "pins"},
                                             {"export"},
                                             {"import"}}) {
    std::vector<std::string> arguments = verb;
    arguments.push_back("--help");
    const Ran ran = run_program(FINGERPOST_PROGRAM, arguments);
    CHECK(ran.status == 0);
    CHECK(ran.out.find("Example") != std::string::npos);
    CHECK(ran.out.find("--directory") != std::string::npos);
  }
}

}  // namespace fingerpost
