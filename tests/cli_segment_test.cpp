// The verbs that look at a segment or its snapshots, with the real syncer behind them.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "shm/hash.h"
#include "syncer/sqlite_db.h"
#include "tests/run_program.h"

namespace fingerpost {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

constexpr std::uint32_t kBuckets = 8;
constexpr std::uint32_t kUnassigned = 7;  // the one bucket without a shard

// fingerpostd, until it is stopped or the test ends.
class Daemon {
 public:
  explicit Daemon(const Arguments& arguments, const std::string& log) {
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no fork");
    if (child_ != 0) return;
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    std::vector<char*> argv = {const_cast<char*>(FINGERPOST_DAEMON)};
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(FINGERPOST_DAEMON, argv.data());
    ::_exit(127);
  }
  ~Daemon() { stop(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Its exit status; -1 if it had to be killed, or was stopped before.
  int stop() {
    if (child_ <= 0) return -1;
    ::kill(child_, SIGTERM);
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t child_ = 0;
};

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) objects.push_back(Json::parse(line));
  return objects;
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// An id that `bucket` answers for, unless it has an entry of its own.
std::string id_of_bucket(std::uint32_t bucket) {
  for (int i = 0;; ++i) {
    std::string id = "somebody-" + std::to_string(i);
    if (placement_hash(id) % kBuckets == bucket) return id;
  }
}

struct Host {
  TempFolder folder;
  TempFolder memory{"/dev/shm"};
  std::string path = folder.file("directory.db");
  std::string state_dir = folder.file("state");
  std::optional<Daemon> daemon;

  Host() {
    ::unsetenv("FINGERPOST_DIRECTORY");
    ::setenv("FINGERPOST_RUNDIR", memory.path().c_str(), 1);
  }
  ~Host() { ::unsetenv("FINGERPOST_RUNDIR"); }

  Ran fingerpost(const Arguments& arguments, const std::string& input = {}) const {
    return run_program(FINGERPOST_PROGRAM, arguments, input);
  }
  Ran change(Arguments arguments, const std::string& input = {}) const {
    arguments.insert(arguments.end(), {"--directory", path});
    const Ran ran = fingerpost(arguments, input);
    REQUIRE_MESSAGE(ran.status == 0, ran.err);
    return ran;
  }
  std::uint64_t change_version(Arguments arguments) const {
    arguments.push_back("--json");
    return Json::parse(change(arguments).out)["version"].get<std::uint64_t>();
  }
  void make() const {
    change({"init", "--buckets", std::to_string(kBuckets)});
    change({"shard", "add", "s1", "--primary", "db1:5432", "--replica", "db2:5432", "--replica",
            "db3:5432", "--region", "eu", "--attr", "tier=gold"});
    change({"shard", "add", "s2"});
    change({"bucket", "assign", "--range", "0-6"});
    std::string rows = "entry_id,shard_id\n";
    for (int i = 0; i < 500; ++i) {
      rows += "tenant-" + std::to_string(i) + (i % 2 == 0 ? ",s1\n" : ",s2\n");
    }
    rows += "a-tenant-whose-id-is-longer-than-what-a-slot-of-the-table-holds-inline,s1\n";
    change({"import", "-"}, rows);
  }

  void serve() {
    daemon.emplace(Arguments{"--name", "orders", "--directory", path, "--state-dir", state_dir,
                             "--capacity", "20000"},
                   folder.file("log"));
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (fingerpost({"status", "orders", "--ready"}).status != 0) {
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  void stop() {
    CHECK(daemon->stop() == 0);
    daemon.reset();
  }
  void make_and_serve() {
    make();
    serve();
  }

  void sql(const std::string& text) const { SqliteDb(path, SqliteDb::Mode::read_write).exec(text); }
  void wait_for(std::uint64_t version) const {
    REQUIRE(fingerpost({"wait", "orders", "--version", std::to_string(version), "--timeout", "10s"})
                .status == 0);
  }
  Ran check(const std::string& timeout = "10s") const {
    return fingerpost({"check", "orders", "--directory", path, "--timeout", timeout});
  }
  // What --json says: the differences, then the totals.
  std::vector<Json> check_json() const {
    return lines_of(
        fingerpost({"check", "orders", "--directory", path, "--timeout", "200ms", "--json"}).out);
  }
  std::string snapshot() const {
    const auto listed = lines_of(
        fingerpost({"snapshot", "list", "--state-dir", state_dir, "--name", "orders", "--json"})
            .out);
    REQUIRE_FALSE(listed.empty());
    return listed.front()["path"].get<std::string>();
  }
};

void flip_byte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(at);
  const int before = file.get();
  file.seekp(at);
  file.put(static_cast<char>(before ^ 1));
}

}  // namespace

TEST_CASE_FIXTURE(Host, "wait says when a tenant is writable or newer, and what it is otherwise") {
  make_and_serve();
  const std::string id = "tenant-0";
  const auto resolved = Json::parse(fingerpost({"resolve", "orders", id, "--json"}).out);
  const auto epoch = resolved["epoch"].get<std::uint64_t>();
  const auto writable = Json::parse(fingerpost({"wait", "orders", "--writable", id, "--json"}).out);
  CHECK(writable["shard"] == resolved["shard"]);
  CHECK(
      fingerpost({"wait", "orders", "--newer", id, "--epoch", std::to_string(epoch - 1)}).status ==
      0);
  const Ran in_vain = fingerpost(
      {"wait", "orders", "--newer", id, "--epoch", std::to_string(epoch), "--timeout", "50ms"});
  CHECK(in_vain.status == 1);
  CHECK(in_vain.out.empty());
  CHECK(in_vain.err ==
        "fingerpost: orders: '" + id + "' is ACTIVE since version " + std::to_string(epoch) + "\n");
  CHECK(fingerpost({"wait", "orders", "--writable", "bucket:1"}).status == 3);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"wait", "orders"},
           {"wait", "orders", "--newer", id},
           {"wait", "orders", "--version", "1", "--writable", id}}) {
    CHECK(fingerpost(arguments).status == 2);
  }
}

TEST_CASE_FIXTURE(Host,
                  "resolve --json gives exactly the keys of the contract, absent values null") {
  make_and_serve();
  const auto answers = lines_of(fingerpost({"resolve", "orders", "tenant-0", id_of_bucket(0),
                                            id_of_bucket(kUnassigned), "--json"})
                                    .out);
  REQUIRE(answers.size() == 3);
  const std::set<std::string> contract = {
      "id",    "status",   "shard",  "primary", "replicas",   "region", "epoch", "state", "target",
      "parts", "writable", "source", "version", "generation", "age_ms", "stale", "reason"};
  for (const Json& answer : answers) CHECK(keys_of(answer) == contract);

  const Json& own = answers[0];
  CHECK(own["id"] == "tenant-0");
  CHECK(own["status"] == "found");
  CHECK(own["shard"] == "s1");
  CHECK(own["primary"] == "db1:5432");
  CHECK(own["replicas"] == Json({"db2:5432", "db3:5432"}));
  CHECK(own["region"] == "eu");
  CHECK(own["epoch"].get<std::uint64_t>() > 0);
  CHECK(own["state"] == "ACTIVE");
  CHECK(own["target"].is_null());
  CHECK(own["parts"].is_null());
  CHECK(own["writable"] == true);
  CHECK(own["source"] == "override");
  CHECK(own["generation"].get<std::uint64_t>() > 0);
  CHECK(own["version"].get<std::uint64_t>() >= own["epoch"].get<std::uint64_t>());
  CHECK(own["age_ms"].get<std::int64_t>() < 20'000);
  CHECK(own["stale"] == false);
  CHECK(own["reason"].is_null());

  CHECK(answers[1]["status"] == "found");
  CHECK(answers[1]["source"] == "bucket");
  const Json& unknown = answers[2];
  CHECK(unknown["status"] == "unknown");
  for (const std::string key :
       {"shard", "primary", "replicas", "region", "epoch", "state", "source"}) {
    CAPTURE(key);
    CHECK(unknown[key].is_null());
  }
  CHECK(unknown["writable"] == false);
}

TEST_CASE_FIXTURE(Host, "resolve exits with the worst of its answers, one line for each id") {
  make_and_serve();
  const std::string unknown = id_of_bucket(kUnassigned);
  const Ran found = fingerpost({"resolve", "orders", "tenant-0", "tenant-1"});
  CHECK(found.status == 0);
  CHECK(found.out.starts_with("tenant-0\tfound\ts1\tdb1:5432\tACTIVE\t\t"));
  CHECK(found.out.ends_with("\toverride\n"));
  CHECK(found.err.empty());
  const Ran one_unknown = fingerpost({"resolve", "orders", unknown, "tenant-1"});
  CHECK(one_unknown.status == 1);
  CHECK(one_unknown.out.starts_with(unknown + "\tunknown\ntenant-1\tfound\ts2\t"));
  const Ran one_refused = fingerpost({"resolve", "orders", "a\nb", unknown, "tenant-1"});
  CHECK(one_refused.status == 3);
  CHECK(one_refused.err == "fingerpost: tenant id 'a\\x0ab' holds a control character\n");
  const auto refused = lines_of(fingerpost({"resolve", "orders", "bucket:1", "--json"}).out);
  CHECK(refused[0]["status"] == "refused");
  CHECK_FALSE(refused[0]["reason"].is_null());

  const std::uint64_t deleted = change_version({"tenant", "delete", "tenant-3"});
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'tenant-5'");
  wait_for(deleted + 1);
  const Ran gone = fingerpost({"resolve", "orders", "-", "--json"}, "tenant-3\ntenant-5\n");
  CHECK(gone.status == 1);
  const auto answers = lines_of(gone.out);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0]["status"] == "deleted");
  CHECK(answers[0]["state"] == "DELETED");
  CHECK(answers[0]["epoch"] == deleted);
  CHECK(answers[1]["status"] == "found");
  CHECK(answers[1]["state"] == "FROZEN");
  CHECK(answers[1]["writable"] == false);
}

TEST_CASE_FIXTURE(Host, "status --json gives the keys of the contract, and --ready is for probes") {
  const Ran absent = fingerpost({"status", "orders", "--ready"});
  CHECK(absent.status == 1);
  CHECK(absent.out.starts_with("not ready: no segment is named 'orders'; looked at " +
                               memory.path()));
  CHECK(fingerpost({"status", "orders"}).status == 4);
  CHECK(fingerpost({"status", "no/such/folder"}).status == 4);
  CHECK(fingerpost({"status", "..orders"}).status == 3);
  CHECK(fingerpost({"status", "..orders", "--ready"}).status == 3);

  make_and_serve();
  const Json status = Json::parse(fingerpost({"status", "orders", "--json"}).out);
  for (const std::string key :
       {"name",   "path",        "layout_version", "directory_id", "incarnation",    "ready",
        "stale",  "reason",      "generation",     "version",      "entries",        "buckets",
        "shards", "capacity",    "load",           "table_bytes",  "reserved_bytes", "age_ms",
        "source", "quarantined", "withheld",       "counters"}) {
    CAPTURE(key);
    CHECK(status.contains(key));
  }
  CHECK(keys_of(status["source"]) == std::set<std::string>{"kind", "state", "last_error"});
  CHECK(status["name"] == "orders");
  CHECK(status["path"] == memory.file("fingerpost.orders"));
  CHECK(status["ready"] == true);
  CHECK(status["stale"] == false);
  CHECK(status["reason"].is_null());
  CHECK(status["entries"] == 501);
  CHECK(status["buckets"] == kBuckets);
  CHECK(status["shards"] == 2);
  CHECK(status["capacity"] == 20'000);
  CHECK(status["load"].get<double>() > 0.5);
  CHECK(status["load"].get<double>() < 0.9);
  CHECK(status["table_bytes"].get<std::uint64_t>() > 501 * 65);
  CHECK(status["source"]["kind"] == "sqlite");
  CHECK(status["source"]["state"] == "ok");
  CHECK(status["source"]["last_error"].is_null());
  CHECK(status["counters"]["syncs"].get<std::uint64_t>() > 0);

  const Ran shown = fingerpost({"status", "orders"});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("state       ready\n") != std::string::npos);
  CHECK(shown.out.find("501 of 20,000") != std::string::npos);
  CHECK(fingerpost({"status", "orders", "--ready"}).out == "ready\n");
  const Json ready = Json::parse(fingerpost({"status", "orders", "--ready", "--json"}).out);
  CHECK(ready == Json{{"name", "orders"}, {"ready", true}, {"stale", false}, {"reason", nullptr}});
}

TEST_CASE_FIXTURE(Host, "check finds a served directory equal, also while it is written to") {
  make_and_serve();
  const Ran equal = check();
  CHECK(equal.status == 0);
  CHECK(equal.out.starts_with(
      "equal: 501 entries, 7 buckets or hash words and 2 shards of the directory at version "));
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id LIKE 'tenant-1%'");
  change({"tenant", "delete", "tenant-2"});
  change({"tenant", "create", "late", "--shard", "s2"});
  change({"shard", "set", "s1", "--primary", "db2:5432"});
  change({"bucket", "assign"});
  CHECK(check().status == 0);

  std::thread writer([&] {
    for (int i = 0; i < 15; ++i) {
      change({"tenant", "create", "busy-" + std::to_string(i), "--shard", "s1"});
    }
  });
  for (int i = 0; i < 10; ++i) {
    const Ran beside = check();
    CHECK_MESSAGE(beside.status == 0, beside.out);
  }
  writer.join();
}

TEST_CASE_FIXTURE(Host, "a split tenant shows its parts to resolve and to check") {
  make_and_serve();
  const std::uint64_t version = change_version({"tenant", "split", "tenant-0", "--parts", "4"});
  sql("UPDATE shard_directory SET shard_id = 's2' WHERE entry_id = 'part:1:tenant-0'");
  wait_for(version + 1);
  const Ran whole = fingerpost({"resolve", "orders", "tenant-0"});
  CHECK(whole.status == 1);
  CHECK(whole.out == "tenant-0\tsplit\t4 parts\n");
  const auto split = lines_of(fingerpost({"resolve", "orders", "tenant-0", "--json"}).out)[0];
  CHECK(split["status"] == "split");
  CHECK(split["parts"] == 4);
  CHECK(split["shard"].is_null());
  CHECK(split["state"].is_null());
  CHECK(split["writable"] == false);
  for (int i = 0; i < 8; ++i) {
    const std::string object = "object-" + std::to_string(i);
    const Ran ran = fingerpost({"resolve", "orders", "tenant-0", "--object", object, "--json"});
    CHECK(ran.status == 0);
    const auto part = lines_of(ran.out)[0];
    CHECK(part["status"] == "found");
    CHECK(part["source"] == "part");
    CHECK(part["parts"] == 4);
    CHECK(part["shard"] == (placement_hash(object) % 4 == 1 ? "s2" : "s1"));
  }
  std::string moved;  // an object of part 1
  for (int i = 0; moved.empty(); ++i) {
    if (placement_hash("object-" + std::to_string(i)) % 4 == 1)
      moved = "object-" + std::to_string(i);
  }
  const Arguments explained = {"resolve", "orders",    "tenant-0",    "--object",
                               moved,     "--explain", "--directory", path};
  const Ran why = fingerpost(explained);
  CHECK(why.out.find("rule      part: it is split into 4, and the object belongs to "
                     "part:1:tenant-0\n") != std::string::npos);
  CHECK(why.out.find("row       part:1:tenant-0: s2 ACTIVE, epoch ") != std::string::npos);
  CHECK(why.out.find("part:1:tenant-0 is s2 ACTIVE, epoch ") != std::string::npos);
  Arguments in_json = explained;
  in_json.emplace_back("--json");
  const Json part_row = lines_of(fingerpost(in_json).out).back();
  CHECK(part_row["rule"] == "part");
  CHECK(part_row["row"]["shard"] == "s2");
  CHECK(part_row["directory"]["row"]["shard"] == "s2");
  const auto plain =
      lines_of(fingerpost({"resolve", "orders", "tenant-1", "--object", "o", "--json"}).out)[0];
  CHECK(plain["source"] == "override");
  CHECK(plain["parts"].is_null());
  CHECK(check().status == 0);
  stop();
  CHECK(check().status == 0);
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'part:2:tenant-0'");
  const Ran part = check("100ms");
  CHECK(part.status == 1);
  CHECK(part.out.find("entry 'part:2:tenant-0': directory s1 FROZEN") != std::string::npos);
  sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 'part:2:tenant-0'");
  sql("UPDATE directory_split SET parts = 8 WHERE entry_id = 'tenant-0'");
  CHECK(check("100ms").out.find("split into 8 parts") != std::string::npos);
}

TEST_CASE_FIXTURE(Host, "check names what differs once the syncer has stopped") {
  make_and_serve();
  stop();
  CHECK(check().status == 0);
  sql("UPDATE shard_directory SET shard_id = 's2' WHERE entry_id = 'tenant-0'");
  sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('stranger', 's1')");
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'bucket:1'");
  change({"shard", "set", "s1", "--primary", "db9:1"});
  const Ran differs = check("100ms");
  CHECK(differs.status == 1);
  CHECK(differs.out.find("entry 'stranger': directory s1 ACTIVE, epoch ") != std::string::npos);
  CHECK(differs.out.find("; segment nothing\n") != std::string::npos);

  const auto lines = check_json();
  REQUIRE(lines.size() > 1);
  const Json& totals = lines.back();
  CHECK(totals["equal"] == false);
  CHECK(totals["differences"] == lines.size() - 1);
  CHECK(totals["version"].get<std::uint64_t>() > totals["segment_version"].get<std::uint64_t>());
  std::set<std::string> named;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    CHECK(keys_of(lines[i]) == std::set<std::string>{"kind", "id", "directory", "segment", "why"});
    named.insert(lines[i]["kind"].get<std::string>() + " " +
                 (lines[i]["id"].is_null() ? "" : lines[i]["id"].get<std::string>()));
  }
  for (const std::string name :
       {"version ", "shard s1", "entry tenant-0", "entry stranger", "bucket bucket:1"}) {
    CAPTURE(name);
    CHECK(named.contains(name));
  }
  serve();
  CHECK(check().status == 0);
}

TEST_CASE_FIXTURE(Host,
                  "check tells an entry that the directory does not have, and a restored one") {
  make();
  const std::string before = folder.file("before.db");
  { SqliteDb(path, SqliteDb::Mode::read_write).exec("VACUUM INTO '" + before + "'"); }
  change({"tenant", "create", "later", "--shard", "s1"});
  serve();
  const Ran restored =
      fingerpost({"check", "orders", "--directory", before, "--timeout", "100ms", "--json"});
  CHECK(restored.status == 1);
  const auto lines = lines_of(restored.out);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["kind"] == "version");
  CHECK(lines[0]["why"].get<std::string>().find("ahead") != std::string::npos);
  CHECK(lines[1]["id"] == "later");
  CHECK(lines[1]["directory"].is_null());
  CHECK(lines[1]["segment"].get<std::string>().starts_with("s1 ACTIVE, epoch "));
}

TEST_CASE_FIXTURE(Host, "check counts a row that cannot be served, and says why") {
  make_and_serve();
  sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES (CAST(x'66ff' AS TEXT), 's1')");
  const Ran differs = check();
  CHECK(differs.status == 1);
  CHECK(differs.out.find("entry 'f\\xff': directory s1 ACTIVE") != std::string::npos);
  CHECK(differs.out.find("UTF-8") != std::string::npos);
  CHECK(differs.out.find("\n1 difference: 502 entries, ") != std::string::npos);
  const std::string set_aside = "1 row quarantined, which cannot be applied\n";
  CHECK(differs.out.ends_with("\nset aside by the syncer: " + set_aside));
  CHECK(Json::parse(fingerpost({"status", "orders", "--json"}).out)["quarantined"] == 1);
  CHECK(fingerpost({"status", "orders"}).out.find("set aside   " + set_aside) != std::string::npos);
}

TEST_CASE_FIXTURE(Host, "check and status count apart what waits for an approval") {
  make_and_serve();
  CHECK(fingerpost({"status", "orders"}).out.find("set aside   nothing\n") != std::string::npos);
  sql("UPDATE shard_directory SET shard_id = 's2' WHERE entry_id < 'tenant-2' AND shard_id = 's1' "
      "AND entry_id NOT LIKE 'bucket:%'");
  const auto withheld = [&] {
    return Json::parse(fingerpost({"status", "orders", "--json"}).out)["withheld"]
        .get<std::uint64_t>();
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (withheld() == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::string count = std::to_string(withheld());
  const std::string set_aside = count + " rows withheld until somebody approves\n";
  const Ran differs = check();
  CHECK(differs.status == 1);
  CHECK(differs.out.find("\n" + count + " differences: ") != std::string::npos);
  CHECK(differs.out.ends_with("\nset aside by the syncer: " + set_aside));
  CHECK(check_json().back()["withheld"] == withheld());
  CHECK(fingerpost({"status", "orders"}).out.find("set aside   " + set_aside) != std::string::npos);
}

TEST_CASE_FIXTURE(Host, "status says that the syncer shows no sign of life") {
  make_and_serve();
  const auto sign = [&] {
    return Json::parse(fingerpost({"status", "orders", "--json"}).out)["heartbeat_age_ms"]
        .get<std::int64_t>();
  };
  CHECK(sign() < 2'000);
  CHECK(fingerpost({"status", "orders"}).out.find("syncer      alive\n") != std::string::npos);
  stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(2'100));
  CHECK(sign() > 2'000);
  const Ran dead = fingerpost({"status", "orders"});
  CHECK(dead.status == 0);
  CHECK(dead.out.find("syncer      no sign of life for ") != std::string::npos);
}

TEST_CASE_FIXTURE(Host, "check compares a hash list, and knows another directory") {
  change({"init", "--fallback", "hash", "--hash-shards", "s1,s2"});
  change({"shard", "add", "s1"});
  change({"shard", "add", "s2"});
  change({"tenant", "create", "acme", "--shard", "s2"});
  serve();
  const Ran equal = check();
  CHECK(equal.status == 0);
  CHECK(equal.out.starts_with("equal: 1 entries, 2 buckets or hash words and 2 shards"));
  CHECK(fingerpost({"resolve", "orders", "anybody"}).out.find("\thash\n") != std::string::npos);

  const std::string other = folder.file("other.db");
  REQUIRE(fingerpost({"init", "--directory", other}).status == 0);
  const Ran foreign = fingerpost({"check", "orders", "--directory", other});
  CHECK(foreign.status == 1);
  CHECK(foreign.out.starts_with("directory: directory "));
}

TEST_CASE_FIXTURE(Host, "check that cannot read one of the two says so and exits with 4") {
  make();
  CHECK(check().status == 4);
  serve();
  const Ran gone = fingerpost({"check", "orders", "--directory", folder.file("absent.db")});
  CHECK(gone.status == 4);
  CHECK(gone.err.find(folder.file("absent.db")) != std::string::npos);
  CHECK(gone.out.empty());
  std::ofstream(folder.file("text.db"))
      << "this is no database, whatever its name says, not at all";
  CHECK(fingerpost({"check", "orders", "--directory", folder.file("text.db")}).status == 3);
  CHECK(fingerpost({"check", "orders", "--directory", "mysql://x"}).status == 3);
  CHECK(fingerpost({"check", "orders"}).status == 2);
}

TEST_CASE_FIXTURE(Host,
                  "wait answers when a version is served, and says which one is when it is not") {
  make_and_serve();
  const std::uint64_t version = change_version({"tenant", "create", "new", "--shard", "s1"});
  const Ran served = fingerpost({"wait", "orders", "--version", std::to_string(version), "--json"});
  CHECK(served.status == 0);
  CHECK(Json::parse(served.out)["version"].get<std::uint64_t>() >= version);
  CHECK(fingerpost({"resolve", "orders", "new"}).status == 0);
  const Ran late =
      fingerpost({"wait", "orders", "--version", std::to_string(version + 1), "--timeout", "50ms"});
  CHECK(late.status == 1);
  CHECK(late.out.empty());
  CHECK(late.err == "fingerpost: orders: version " + std::to_string(version + 1) +
                        " is not served yet, version " + std::to_string(version) + " is\n");
  CHECK(fingerpost({"wait", "absent", "--version", "1"}).status == 4);
  CHECK(fingerpost({"wait", "orders"}).status == 2);
  for (const std::string timeout : {"soon", "5w", "-1s", "", "99999999999h"}) {
    CAPTURE(timeout);
    CHECK(fingerpost({"wait", "orders", "--version", "1", "--timeout", timeout}).status == 2);
  }
}

TEST_CASE_FIXTURE(Host, "snapshots are listed, inspected and verified") {
  make_and_serve();
  const std::uint64_t version = change_version({"tenant", "create", "new", "--shard", "s1"});
  wait_for(version);
  stop();
  const auto listed = lines_of(
      fingerpost({"snapshot", "list", "--state-dir", state_dir, "--name", "orders", "--json"}).out);
  REQUIRE_FALSE(listed.empty());
  CHECK(listed.front()["version"] == version);
  const std::string path_of_newest = listed.front()["path"];
  CHECK(fingerpost({"snapshot", "list", "--state-dir", state_dir, "--name", "orders"})
            .out.starts_with(path_of_newest + "\t"));
  const Ran none = fingerpost({"snapshot", "list", "--state-dir", state_dir, "--name", "other"});
  CHECK(none.status == 0);
  CHECK(none.out.empty());

  const Ran inspected = fingerpost({"snapshot", "inspect", path_of_newest, "--json"});
  CHECK(inspected.status == 0);
  const Json inside = Json::parse(inspected.out);
  CHECK(inside["good"] == true);
  CHECK(inside["version"] == version);
  CHECK(inside["records"]["overrides"] == 502);
  CHECK(inside["records"]["buckets"] == 7);
  CHECK(inside["layout"]["fallback"] == "buckets");
  CHECK(inside["layout"]["buckets"] == kBuckets);
  REQUIRE(inside["shards"].size() == 2);
  CHECK(inside["shards"][0]["replicas"] == Json({"db2:5432", "db3:5432"}));
  const std::string backend = inside["io"]["backend"];
  CHECK((backend == "io_uring" || backend == "plain"));
  CHECK(inside["io"]["depth_reached"].get<int>() >= 1);
  CHECK(inside["io"]["bytes_read"].get<std::uint64_t>() > 502 * 20);
  CHECK(fingerpost({"snapshot", "inspect", path_of_newest}).out.find("\nstate       good\n") !=
        std::string::npos);

  const Ran good = fingerpost({"snapshot", "verify", path_of_newest});
  CHECK(good.status == 0);
  CHECK(good.out ==
        path_of_newest + ": good, 509 entries at version " + std::to_string(version) + "\n");
}

TEST_CASE_FIXTURE(Host, "a snapshot that is not good is a no that says where") {
  make_and_serve();
  stop();
  const std::string good = snapshot();
  const std::string flipped = folder.file("flipped.fps");
  std::filesystem::copy_file(good, flipped);
  flip_byte(flipped, 4'096 + 200);
  const Ran block = fingerpost({"snapshot", "verify", good, flipped});
  CHECK(block.status == 1);
  CHECK(block.out.starts_with(good + ": good"));
  CHECK(block.err.find(flipped) != std::string::npos);
  CHECK(block.err.find("block 0") != std::string::npos);
  const Json inside = Json::parse(fingerpost({"snapshot", "inspect", flipped, "--json"}).out);
  CHECK(inside["good"] == false);
  CHECK(inside["error"].get<std::string>().find("block 0") != std::string::npos);
  CHECK(inside["layout"]["buckets"] == kBuckets);

  const std::string cut = folder.file("orders-1-2.fps");
  std::filesystem::copy_file(good, cut);
  std::filesystem::resize_file(cut, 5'000);
  CHECK(fingerpost({"snapshot", "inspect", cut}).status == 1);
  const Ran list =
      fingerpost({"snapshot", "list", "--state-dir", folder.path(), "--name", "orders", "--json"});
  CHECK(list.status == 1);
  CHECK(Json::parse(list.out)["path"] == cut);
  CHECK(Json::parse(list.out)["good"] == false);
  CHECK(fingerpost({"snapshot", "verify", folder.file("absent.fps")}).status == 4);
  CHECK(
      fingerpost({"snapshot", "list", "--state-dir", folder.file("none"), "--name", "x"}).status ==
      4);
}

TEST_CASE_FIXTURE(Host,
                  "each of these verbs has its help, with an example and what it exits with") {
  for (const Arguments& verb : std::vector<Arguments>{{"resolve"},
                                                      {"status"},
                                                      {"check"},
                                                      {"wait"},
                                                      {"snapshot", "list"},
                                                      {"snapshot", "inspect"},
                                                      {"snapshot", "verify"}}) {
    CAPTURE(verb.back());
    CHECK(fingerpost(verb).status == 2);
    Arguments asked = verb;
    asked.push_back("--help");
    const Ran help = fingerpost(asked);
    CHECK(help.status == 0);
    CHECK(help.out.find("Example:\n  fingerpost " + verb.front()) != std::string::npos);
    CHECK(help.out.find("Exit status: 0") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Host, "resolve --explain names rule, row and version, and what lies beneath") {
  make();
  const std::string covered = id_of_bucket(3);
  const std::string nobody = id_of_bucket(kUnassigned);
  const std::uint64_t created = change_version({"tenant", "create", "own", "--shard", "s2"});
  const std::uint64_t version = change_version({"tenant", "create", covered, "--shard", "s2"});
  serve();
  wait_for(version);
  const auto explain = [&](const std::string& id, Arguments more = {}) {
    Arguments arguments = {"resolve", "orders", id, "--explain", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return lines_of(fingerpost(arguments).out).back();
  };
  const Json own = explain(covered, {"--directory", path});
  CHECK(own["rule"] == "override");
  CHECK(own["row"]["entry"] == covered);
  CHECK(own["row"]["shard"] == "s2");
  CHECK(own["row"]["epoch"] == version);
  CHECK(own["without_override"]["entry"] == "bucket:3");
  CHECK(own["without_override"]["state"] == "ACTIVE");
  CHECK(own["version"] == version);
  CHECK(own["age_ms"].is_number());
  CHECK(own["directory"]["version"] == version);
  CHECK(own["directory"]["row"]["verb"] == "tenant create");
  CHECK(explain("own")["row"]["epoch"] == created);
  CHECK(explain("own")["directory"].is_null());

  const Json unknown = explain(nobody, {"--directory", path});
  CHECK(unknown["rule"] == "none");
  CHECK(unknown["row"].is_null());
  CHECK(unknown["directory"]["row"].is_null());
  const Ran text = fingerpost({"resolve", "orders", covered, "--explain", "--directory", path});
  CHECK(text.status == 0);
  CHECK(text.out.find("rule      override: its own entry") != std::string::npos);
  CHECK(text.out.find("without   bucket:3: ") != std::string::npos);
  CHECK(text.out.find("by tenant create (") != std::string::npos);
  // A directory that is gone is said, and is no answer.
  const Ran gone =
      fingerpost({"resolve", "orders", covered, "--explain", "--directory", "/no/such"});
  CHECK(gone.status == 0);
  CHECK_FALSE(gone.err.empty());
}

}  // namespace fingerpost
