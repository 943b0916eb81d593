// Waiting for a tenant to become writable, or newer: what ends a wait, and what it says then.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

#include "tests/syncer_host.h"

using namespace fingerpost;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

// A syncer that turns in the test's thread, and a worker that waits in another.
struct Waiting : SyncerHost {
  Waiting() {
    SqliteDb db = this->db();
    put_tenants(db, 300, "alpha");
    serve();
    worker.emplace(reader());
  }

  // What `wait(worker)` gives, while the syncer turns and `meanwhile` happens.
  template <class Wait>
  auto during(const std::function<void()>& meanwhile, Wait&& wait) {
    auto waiting = std::async(std::launch::async, [&] { return wait(*worker); });
    turn_for(50ms);
    CHECK_MESSAGE(waiting.wait_for(0s) == std::future_status::timeout, "it did not wait");
    meanwhile();
    CHECK(turn_until([&] { return waiting.wait_for(0s) == std::future_status::ready; }));
    return waiting.get();
  }

  std::optional<Reader> worker;
};

auto writable(const std::string& id, std::chrono::nanoseconds timeout = 10s) {
  return [=](const Reader& worker) { return worker.wait_writable(id, timeout); };
}
auto newer(const std::string& id, std::uint64_t epoch) {
  return [=](const Reader& worker) { return worker.wait_newer(id, epoch, 10s); };
}

}  // namespace

TEST_CASE_FIXTURE(Waiting, "a tenant that is writable, or newer already, makes nobody wait") {
  const auto found = worker->wait_writable("t5", 0s);
  REQUIRE(found.ok());
  CHECK(found->shard().name() == "alpha");
  CHECK(worker->wait_writable("t5", "an object", 0s).ok());
  CHECK(worker->wait_newer("t5", found->epoch() - 1, 0s).ok());
  CHECK(worker->wait_newer("t5", "an object", found->epoch() - 1, 0s).ok());
}

TEST_CASE_FIXTURE(Waiting,
                  "a frozen tenant is waited for until its flip, and the route says where") {
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(turn_until([&] { return worker->resolve("t5").state() == State::frozen; }));
  const auto found = during(
      [&] {
        sql("UPDATE shard_directory SET shard_id = 'beta', state = 'ACTIVE' WHERE entry_id = 't5'");
      },
      writable("t5"));
  REQUIRE_MESSAGE(found.ok(), found.status().message());
  CHECK(found->shard().name() == "beta");
  CHECK(found->writable());
}

TEST_CASE_FIXTURE(Waiting, "a tenant that is created, revived, or moved ends the wait for it") {
  const auto created = during(
      [&] { sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('new', 'beta')"); },
      newer("new", worker->resolve("new").epoch()));
  REQUIRE(created.ok());
  CHECK(created->source() == RouteSource::override_entry);

  sql("UPDATE shard_directory SET state = 'DELETED' WHERE entry_id = 't6'");
  REQUIRE(turn_until([&] { return worker->resolve("t6").answer() == Answer::deleted; }));
  const auto revived =
      during([&] { sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 't6'"); },
             writable("t6"));
  CHECK(revived.ok());

  const auto moved =
      during([&] { sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = 't7'"); },
             newer("t7", worker->resolve("t7").epoch()));
  REQUIRE(moved.ok());
  CHECK(moved->shard().name() == "gamma");
}

TEST_CASE_FIXTURE(Waiting, "a bucket wakes whoever waits for a tenant that it answers for") {
  const std::string bucket = "bucket:" + std::to_string(placement_hash("somebody") % 16);
  sql("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('" + bucket +
      "', 'beta')");
  REQUIRE(sees(*worker, "somebody", "beta"));
  const Route before = worker->resolve("somebody");
  REQUIRE(before.source() == RouteSource::bucket);
  const auto begin = Clock::now();
  const auto found = during(
      [&] {
        sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = '" + bucket + "'");
      },
      newer("somebody", before.epoch()));
  REQUIRE(found.ok());
  CHECK(found->shard().name() == "gamma");
  CHECK(Clock::now() - begin < 1'900ms);  // by the wake, not by the two seconds
}

TEST_CASE_FIXTURE(Waiting, "an object waits for its own part of a split tenant") {
  sql("INSERT INTO directory_split (entry_id, parts) VALUES ('t8', 2)");
  REQUIRE(turn_until([&] { return worker->resolve("t8").answer() == Answer::split; }));
  const std::string part = "part:" + std::to_string(placement_hash("object") % 2) + ":t8";
  const auto whole = worker->wait_writable("t8", 10ms);
  CHECK(whole.status().code() == Code::timeout);
  CHECK(whole.status().message() == "'t8' is split, and no object was given");
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = '" + part + "'");
  REQUIRE(turn_until([&] { return worker->resolve("t8", "object").state() == State::frozen; }));
  const auto found = during(
      [&] {
        sql("UPDATE shard_directory SET shard_id = 'beta', state = 'ACTIVE' WHERE entry_id = '" +
            part + "'");
      },
      [](const Reader& reader) { return reader.wait_writable("t8", "object", 10s); });
  REQUIRE_MESSAGE(found.ok(), found.status().message());
  CHECK(found->shard().name() == "beta");
}

TEST_CASE_FIXTURE(Waiting, "a wait that ends in vain says what the tenant is instead") {
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(turn_until([&] { return worker->resolve("t5").state() == State::frozen; }));
  const auto begin = Clock::now();
  const auto frozen = worker->wait_writable("t5", 30ms);
  CHECK(Clock::now() - begin >= 30ms);
  CHECK(frozen.status().code() == Code::timeout);
  CHECK(frozen.status().message() ==
        "'t5' is FROZEN since version " + std::to_string(worker->resolve("t5").epoch()));
  for (const std::string& id : {std::string(), std::string("bucket:1"), std::string("a\tb")}) {
    CHECK(worker->wait_writable(id, 10s).status().code() == Code::refused);
    CHECK(worker->wait_newer(id, 0, 10s).status().code() == Code::refused);
  }
}

TEST_CASE_FIXTURE(Waiting, "a generation switch, a death and an adoption lose no wait") {
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(turn_until([&] { return worker->resolve("t5").state() == State::frozen; }));
  const std::uint64_t generation = worker->generation();
  const auto found = during(
      [&] {
        SqliteDb db = this->db();
        put_tenants(db, 3'000, "alpha", "more");
        REQUIRE(turn_until([&] { return worker->generation() > generation; }));
        kill();
        serve();
        sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 't5'");
      },
      writable("t5"));
  CHECK_MESSAGE(found.ok(), found.status().message());
}

TEST_CASE_FIXTURE(Waiting, "a wait goes on in the successor of its segment") {
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(turn_until([&] { return worker->resolve("t5").state() == State::frozen; }));
  const auto found = during(
      [&] {
        kill();
        options.capacity *= 2;
        serve();
        const Reader other = reader();
        REQUIRE(turn_until([&] { return other.status().capacity == options.capacity; }));
        sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 't5'");
      },
      writable("t5"));
  CHECK_MESSAGE(found.ok(), found.status().message());
  CHECK(worker->status().capacity == options.capacity);
}

TEST_CASE_FIXTURE(Waiting, "a history that changes ends every wait, with a status of its own") {
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(turn_until([&] { return worker->resolve("t5").state() == State::frozen; }));
  copy_database(directory_path(), file("backup.db"));
  sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't6'");
  REQUIRE(sees(*worker, "t6", "beta"));
  const auto found =
      during([&] { replace_database(directory_path(), file("backup.db")); }, writable("t5"));
  CHECK(found.status().code() == Code::other_history);
}

TEST_CASE_FIXTURE(Waiting, "a child goes on waiting on what its parent had mapped") {
  sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 't5'");
  REQUIRE(turn_until([&] { return worker->resolve("t5").state() == State::frozen; }));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(worker->wait_writable("t5", 10s).ok() ? 0 : 1);
  turn_for(50ms);
  sql("UPDATE shard_directory SET state = 'ACTIVE' WHERE entry_id = 't5'");
  int status = -1;
  CHECK(turn_until([&] { return ::waitpid(child, &status, WNOHANG) == child; }));
  CHECK(status == 0);
}
