// Split tenants from a real SQLite file to a worker, through everything that may come in between.
#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <thread>

#include "shm/split_record.h"
#include "tests/syncer_host.h"

using namespace fingerpost;

namespace {

// A host whose directory has tenant 'acme' on alpha, split in `parts`.
struct SplitHost : SyncerHost {
  explicit SplitHost(unsigned parts) {
    sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('acme', 'alpha')");
    sql("INSERT INTO directory_split (entry_id, parts) VALUES ('acme', " + std::to_string(parts) +
        ")");
  }
  void grow(unsigned parts) const {
    sql("UPDATE directory_split SET parts = " + std::to_string(parts) + " WHERE entry_id = 'acme'");
  }
  // By a verb: the poison guard asks nothing.
  void move_part(unsigned part, const std::string& shard) const {
    sql("BEGIN IMMEDIATE;"
        "INSERT INTO directory_session (id, who, verb) VALUES (1, 'test', 'move flip');"
        "UPDATE shard_directory SET shard_id = '" +
        shard + "' WHERE entry_id = 'part:" + std::to_string(part) +
        ":acme';"
        "DELETE FROM directory_session; COMMIT");
  }
  bool serves_version(const Reader& worker) {
    const auto version =
        static_cast<std::uint64_t>(db().integer("SELECT version FROM directory_version"));
    return turn_until([&] {
      worker.poll();
      return worker.version() >= version;
    });
  }
};

// The shards of all parts, or of the tenant.
std::string where(const Reader& worker, const std::string& id = "acme") {
  std::vector<Route> routes(kPartsMax);
  routes.resize(worker.resolve_all(id, routes));
  std::string text;
  for (const Route& route : routes) {
    if (!text.empty()) text += ' ';
    text += route.shard().name();
  }
  return text;
}

std::string shard_of(const Reader& worker, const std::string& object) {
  return std::string(worker.resolve("acme", object).shard().name());
}

}  // namespace

TEST_CASE(
    "a split tenant says so, its parts answer for its objects, and others ignore the object") {
  SplitHost host(4);
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('plain', 'beta')");
  host.move_part(2, "gamma");
  host.serve();
  const Reader worker = host.reader();
  const Route whole = worker.resolve("acme");
  CHECK(whole.answer() == Answer::split);
  CHECK(!whole.found());
  CHECK(!whole.writable());
  CHECK(!whole.shard());
  CHECK(whole.parts() == 4);
  CHECK(whole.epoch() == worker.version());
  CHECK(where(worker) == "alpha alpha gamma alpha");
  for (int i = 0; i < 100; ++i) {
    const std::string object = "object-" + std::to_string(i);
    const Route part = worker.resolve("acme", object);
    CHECK(part.found());
    CHECK(part.writable());
    CHECK(part.source() == RouteSource::part);
    CHECK(part.parts() == 4);
    CHECK(part.shard().name() == (placement_hash(object) % 4 == 2 ? "gamma" : "alpha"));
    CHECK(worker.resolve("plain", object).shard().name() == "beta");
    CHECK(worker.resolve("plain", object).parts() == 0);
    CHECK(worker.resolve("nobody", object).answer() == worker.resolve("nobody").answer());
    CHECK(worker.resolve("part:2:acme", object).answer() == Answer::refused);
  }
  std::vector<Route> few(2);
  CHECK(worker.resolve_all("acme", few) == 4);
  CHECK(few[1].shard().name() == "alpha");
  CHECK(worker.resolve_all("plain", few) == 1);
  CHECK(few[0].shard().name() == "beta");
  CHECK(worker.resolve_all("nobody", few) == 1);
  CHECK(few[0].answer() == Answer::unknown);
  CHECK(worker.resolve_all("part:2:acme", {}) == 1);
  CHECK(worker.undetermined_count() == 0);
}

TEST_CASE(
    "each change of a split tenant reaches a worker: move, growth, merge, split again, deletion") {
  SplitHost host(2);
  host.serve();
  const Reader worker = host.reader();
  CHECK(where(worker) == "alpha alpha");
  host.sql(
      "UPDATE shard_directory SET state = 'MIGRATING', target_shard = 'beta' "
      "WHERE entry_id = 'part:1:acme'");
  REQUIRE(host.serves_version(worker));
  std::vector<Route> routes(2);
  REQUIRE(worker.resolve_all("acme", routes) == 2);
  CHECK(routes[0].state() == State::active);
  CHECK(routes[1].state() == State::migrating);
  CHECK(routes[1].target().name() == "beta");
  CHECK(routes[1].epoch() > routes[0].epoch());
  host.sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'part:1:acme'");
  REQUIRE(host.serves_version(worker));
  worker.resolve_all("acme", routes);
  CHECK(routes[0].writable());
  CHECK(!routes[1].writable());
  host.sql(
      "UPDATE shard_directory SET state = 'ACTIVE', target_shard = NULL, shard_id = 'beta' "
      "WHERE entry_id = 'part:1:acme'");
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha beta");

  host.grow(6);
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha beta alpha beta alpha beta");
  host.grow(2);  // merged: parts that agree
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha beta");
  host.move_part(1, "alpha");
  host.sql("DELETE FROM directory_split WHERE entry_id = 'acme'");
  REQUIRE(host.serves_version(worker));
  CHECK(worker.resolve("acme").found());
  CHECK(worker.resolve("acme").source() == RouteSource::override_entry);
  CHECK(worker.resolve("acme").parts() == 0);
  CHECK(where(worker) == "alpha");
  CHECK(worker.resolve("acme").epoch() == worker.version());

  host.sql("INSERT INTO directory_split (entry_id, parts) VALUES ('acme', 3)");
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha alpha alpha");
  host.sql("UPDATE shard_directory SET state = 'DELETED' WHERE entry_id = 'acme'");
  REQUIRE(host.serves_version(worker));
  CHECK(worker.resolve("acme").answer() == Answer::deleted);
  CHECK(worker.resolve("acme", "an object").answer() == Answer::deleted);
  host.sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 'acme'");
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha alpha alpha");
  CHECK(count_of(worker, Counter::quarantined) == 0);
  CHECK(count_of(worker, Counter::entries) == 1);
}

TEST_CASE(
    "no object ever resolves to a shard that did not hold it, while a split grows and moves") {
  SplitHost host(2);
  host.serve();
  constexpr int kObjects = 64;
  // Where each object has been by what is committed; written before the commit that adds to it.
  std::atomic<unsigned> held[kObjects];
  const std::string names[3] = {"alpha", "beta", "gamma"};
  const auto object = [](int i) { return "object-" + std::to_string(i); };
  for (auto& set : held) set = 1;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> asked{0};
  const Reader worker = host.reader();
  const auto is_held = [&](int i, const Route& route) {
    for (unsigned s = 0; s < 3; ++s) {
      if (route.shard().name() == names[s]) return (held[i].load() >> s & 1) != 0;
    }
    return false;
  };
  std::thread reading([&] {
    std::vector<Route> routes(kPartsMax);
    while (!stop) {
      for (int i = 0; i < kObjects; ++i) {
        wrong += !is_held(i, worker.resolve("acme", object(i)));
        const std::size_t parts = worker.resolve_all("acme", routes);
        wrong += parts < 2 || !is_held(i, routes[part_of(object(i), static_cast<unsigned>(parts))]);
        asked += 2;
      }
    }
  });
  unsigned parts = 2;
  std::vector<unsigned> shard_of_part = {0, 0};
  std::uint64_t moves = 0;
  for (const unsigned next : {2U, 6U, 12U, 96U}) {
    for (unsigned k = parts; k < next; ++k) shard_of_part.push_back(shard_of_part[k % parts]);
    parts = next;
    host.grow(parts);
    for (unsigned round = 0; round < 12; ++round) {
      const unsigned part = (round * 7 + 1) % parts;
      shard_of_part[part] = (shard_of_part[part] + 1) % 3;
      for (int i = 0; i < kObjects; ++i) {
        if (part_of(object(i), parts) == part) held[i] |= 1U << shard_of_part[part];
      }
      host.move_part(part, names[shard_of_part[part]]);
      ++moves;
      host.turn_for(std::chrono::milliseconds(5));
    }
    REQUIRE(host.serves_version(worker));
  }
  stop = true;
  reading.join();
  CHECK(wrong == 0);
  CHECK(asked > 1'000);
  CHECK(worker.undetermined_count() == 0);
  for (int i = 0; i < kObjects; ++i) {
    CHECK(shard_of(worker, object(i)) == names[shard_of_part[part_of(object(i), parts)]]);
  }
  MESSAGE(asked.load() << " answers beside " << moves << " moves");
}

TEST_CASE("a split of 1,024 parts survives a kill, a stop and a start from the snapshot alone") {
  SplitHost host(1'024);
  host.move_part(1'000, "gamma");
  host.serve();
  {
    const Reader worker = host.reader();
    host.kill();
    host.move_part(17, "beta");
    host.serve();
    REQUIRE(host.serves_version(worker));
    CHECK(worker.status().serving == "caught up");
    CHECK(worker.resolve("acme").parts() == 1'024);
    std::vector<Route> routes(kPartsMax);
    REQUIRE(worker.resolve_all("acme", routes) == 1'024);
    CHECK(routes[17].shard().name() == "beta");
    CHECK(routes[1'000].shard().name() == "gamma");
    host.stop();
  }
  // Neither segment nor directory: what there is comes from the snapshot.
  const Reader before = host.reader();
  const std::string expected = where(before);
  const std::uint64_t epoch = before.resolve("acme").epoch();
  REQUIRE(::unlink(host.segment_path().c_str()) == 0);
  REQUIRE(::rename(host.directory_path().c_str(), host.file("away.db").c_str()) == 0);
  REQUIRE(host.start().ok());
  REQUIRE(host.turn_until([&] { return Reader::open(host.segment_path()).ok(); }));
  const Reader worker = host.reader();
  CHECK(worker.status().serving == "snapshot");
  CHECK(where(worker) == expected);
  CHECK(worker.resolve("acme").epoch() == epoch);
  REQUIRE(::rename(host.file("away.db").c_str(), host.directory_path().c_str()) == 0);
  host.move_part(18, "gamma");
  REQUIRE(host.serves_version(worker));
  std::vector<Route> routes(kPartsMax);
  worker.resolve_all("acme", routes);
  CHECK(routes[18].shard().name() == "gamma");
  CHECK(routes[17].shard().name() == "beta");
}

TEST_CASE("a successor of a segment takes its split tenants over") {
  SplitHost host(8);
  host.move_part(5, "beta");
  host.serve();
  const Reader worker = host.reader();
  const std::string expected = where(worker);
  REQUIRE(::unlink(host.segment_path().c_str()) == 0);
  REQUIRE(host.turn_until([&] { return Reader::open(host.segment_path()).ok(); }));
  CHECK(where(host.reader()) == expected);
  CHECK(where(worker) == expected);
}

TEST_CASE("a part on an unknown shard stays where it was, and its tenant's other parts go on") {
  SplitHost host(2);
  host.serve();
  const Reader worker = host.reader();
  host.sql(
      "DROP TRIGGER shard_directory_update_checked;"
      "DROP TRIGGER shard_directory_insert_checked");
  host.move_part(1, "nowhere");
  host.sql("UPDATE directory_split SET parts = 4 WHERE entry_id = 'acme'");
  host.move_part(2, "gamma");
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha alpha gamma alpha");
  CHECK(count_of(worker, Counter::quarantined) == 1);
  CHECK(worker.status().replay_from != 0);
  host.kill();
  host.serve();
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha alpha gamma alpha");
  CHECK(count_of(worker, Counter::quarantined) == 1);
  host.sql("INSERT INTO shard_topology (shard_id) VALUES ('nowhere')");
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::quarantined) == 0; }));
  CHECK(where(worker) == "alpha nowhere gamma nowhere");
  CHECK(worker.status().replay_from == 0);
}

TEST_CASE("a part that the directory lost is named, and what was served stays") {
  SplitHost host(3);
  host.serve();
  const Reader worker = host.reader();
  host.sql("DROP TRIGGER shard_directory_kept");
  host.sql("DELETE FROM shard_directory WHERE entry_id = 'part:1:acme'");
  host.move_part(2, "beta");
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha alpha beta");
  CHECK(count_of(worker, Counter::quarantined) == 1);
}

TEST_CASE("reconciliation mends a split that changed without a version, and finds nothing else") {
  SplitHost host(4);
  host.move_part(3, "beta");
  host.serve();
  const Reader worker = host.reader();
  host.syncer().reconcile_now();
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::reconciliations) == 1; }));
  CHECK(count_of(worker, Counter::repairs) == 0);
  host.sql("DROP TRIGGER shard_directory_updated");
  host.sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = 'part:2:acme'");
  host.sql("UPDATE directory_version SET version = version + 1");
  REQUIRE(host.serves_version(worker));
  CHECK(where(worker) == "alpha alpha alpha beta");
  host.syncer().reconcile_now();
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::reconciliations) == 2; }));
  CHECK(count_of(worker, Counter::repairs) == 1);
  REQUIRE(host.turn_until([&] { return where(worker) == "alpha alpha gamma beta"; }));
}

TEST_CASE(
    "many parts moved at once without a verb are withheld, and an approval lets them through") {
  SplitHost host(32);
  host.serve();
  const Reader worker = host.reader();
  host.sql(
      "UPDATE shard_directory SET shard_id = 'beta' "
      "WHERE entry_id GLOB 'part:*:acme' AND entry_id NOT GLOB 'part:0:*'");
  REQUIRE(host.serves_version(worker));
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::withheld) != 0; }));
  CHECK(where(worker).find("beta") == std::string::npos);
  host.sql(
      "INSERT INTO directory_approval (version, who, at) "
      "SELECT version, 'me', datetime('now') FROM directory_version");
  REQUIRE(host.turn_until([&] { return count_of(worker, Counter::withheld) == 0; }));
  CHECK(where(worker).find("alpha beta beta") == 0);
}
