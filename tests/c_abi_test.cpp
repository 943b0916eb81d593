// The C interface in one process: what it refuses, and that it says what the C++ interface says.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "reader/fingerpost.h"
#include "tests/syncer_host.h"

using namespace fingerpost;

namespace {

struct Host : SyncerHost {
  Host() {
    SqliteDb writer = db();
    put_tenants(writer, 300, "alpha");
    sql("INSERT INTO directory_split (entry_id, parts) VALUES ('t8', 3)");
    serve();
    REQUIRE(fingerpost_open(segment_path().c_str(), nullptr, &reader, message.data(),
                            message.size()) == FINGERPOST_OK);
  }
  ~Host() { fingerpost_close(reader); }

  fingerpost_reader* reader = nullptr;
  std::array<char, 128> message{};
};

std::string text_of(const fingerpost_text& text) {
  return {text.data, text.length};
}

}  // namespace

TEST_CASE_FIXTURE(Host, "a null pointer is refused by every function, wherever it stands") {
  const std::string path = segment_path();
  const fingerpost_reader* const r = reader;
  fingerpost_reader* opened = nullptr;
  fingerpost_route route{};
  fingerpost_shard shard{};
  fingerpost_readiness readiness{};
  fingerpost_text text{};
  fingerpost_text id{"t5", 2};
  std::uint64_t number = 0;
  std::int64_t age = 0;
  std::size_t count = 0;
  shard.struct_size = sizeof shard;
  readiness.struct_size = sizeof readiness;
  const auto refused = [](std::int32_t status) { CHECK(status == FINGERPOST_INVALID_ARGUMENT); };
  refused(fingerpost_open(nullptr, nullptr, &opened, nullptr, 0));
  refused(fingerpost_open(path.c_str(), nullptr, nullptr, nullptr, 0));
  refused(fingerpost_resolve(nullptr, "t5", 2, &route));
  refused(fingerpost_resolve(r, nullptr, 0, &route));
  refused(fingerpost_resolve(r, "t5", 2, nullptr));
  refused(fingerpost_resolve_object(nullptr, "t5", 2, "o", 1, &route));
  refused(fingerpost_resolve_object(r, nullptr, 2, "o", 1, &route));
  refused(fingerpost_resolve_object(r, "t5", 2, nullptr, 1, &route));
  refused(fingerpost_resolve_object(r, "t5", 2, "o", 1, nullptr));
  refused(fingerpost_resolve_many(nullptr, &id, 1, &route));
  refused(fingerpost_resolve_many(r, nullptr, 1, &route));
  refused(fingerpost_resolve_many(r, &id, 1, nullptr));
  refused(fingerpost_resolve_many(r, &text, 1, &route));
  refused(fingerpost_resolve_all(nullptr, "t5", 2, &route, 1, &count));
  refused(fingerpost_resolve_all(r, nullptr, 2, &route, 1, &count));
  refused(fingerpost_resolve_all(r, "t5", 2, nullptr, 1, &count));
  refused(fingerpost_resolve_all(r, "t5", 2, &route, 1, nullptr));
  refused(fingerpost_route_shard(nullptr, &shard));
  refused(fingerpost_route_shard(&route, nullptr));
  refused(fingerpost_route_target(nullptr, &shard));
  refused(fingerpost_route_target(&route, nullptr));
  refused(fingerpost_route_replica(nullptr, 0, &text));
  refused(fingerpost_route_replica(&route, 0, nullptr));
  refused(fingerpost_route_attribute(nullptr, 0, &text, &text));
  refused(fingerpost_route_attribute(&route, 0, nullptr, &text));
  refused(fingerpost_route_attribute(&route, 0, &text, nullptr));
  CHECK(fingerpost_poll(nullptr) < 0);
  refused(fingerpost_served_version(nullptr, &number));
  refused(fingerpost_served_version(r, nullptr));
  refused(fingerpost_age(nullptr, &age));
  refused(fingerpost_age(r, nullptr));
  refused(fingerpost_judge(nullptr, &readiness));
  refused(fingerpost_judge(r, nullptr));
  refused(fingerpost_undetermined_count(nullptr, &number));
  refused(fingerpost_undetermined_count(r, nullptr));
  refused(fingerpost_wait_version(nullptr, 1, 0, nullptr, 0));
  refused(fingerpost_wait_writable(nullptr, "t5", 2, nullptr, 0, 0, &route, nullptr, 0));
  refused(fingerpost_wait_writable(r, nullptr, 2, nullptr, 0, 0, &route, nullptr, 0));
  refused(fingerpost_wait_writable(r, "t5", 2, nullptr, 0, 0, nullptr, nullptr, 0));
  refused(fingerpost_wait_newer(nullptr, "t5", 2, nullptr, 0, 0, 0, &route, nullptr, 0));
  refused(fingerpost_wait_newer(r, nullptr, 2, nullptr, 0, 0, 0, &route, nullptr, 0));
  refused(fingerpost_wait_newer(r, "t5", 2, nullptr, 0, 0, 0, nullptr, nullptr, 0));
  fingerpost_close(nullptr);
  CHECK(fingerpost_resolve_many(r, nullptr, 0, nullptr) == FINGERPOST_OK);
  CHECK(opened == nullptr);
}

TEST_CASE_FIXTURE(Host,
                  "a struct that is too small is refused, one that is larger gets zeros behind") {
  struct Larger {
    fingerpost_readiness known;
    std::array<unsigned char, 16> later;
  } larger;
  std::memset(&larger, 0xEE, sizeof larger);
  larger.known.struct_size = sizeof larger;
  REQUIRE(fingerpost_judge(reader, &larger.known) == FINGERPOST_OK);
  CHECK(larger.known.struct_size == sizeof larger);
  CHECK(larger.known.ready == 1);
  CHECK(larger.known.reason.length == 0);
  for (const unsigned char byte : larger.later) CHECK(byte == 0);

  fingerpost_readiness small{};
  small.struct_size = sizeof small - 1;
  CHECK(fingerpost_judge(reader, &small) == FINGERPOST_INVALID_ARGUMENT);
  fingerpost_route route{};
  REQUIRE(fingerpost_resolve(reader, "t5", 2, &route) == FINGERPOST_OK);
  fingerpost_shard shard{};
  CHECK(fingerpost_route_shard(&route, &shard) == FINGERPOST_INVALID_ARGUMENT);
  const fingerpost_options chosen{sizeof chosen - 1, nullptr};
  fingerpost_reader* opened = nullptr;
  CHECK(fingerpost_open(segment_path().c_str(), &chosen, &opened, nullptr, 0) ==
        FINGERPOST_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Host, "an error has a status with a name, and a message that fits") {
  fingerpost_reader* opened = nullptr;
  std::memset(message.data(), 'x', message.size());
  CHECK(fingerpost_open("/dev/shm/fingerpost.no-such", nullptr, &opened, message.data(), 12) ==
        FINGERPOST_ABSENT);
  CHECK(std::strlen(message.data()) == 11);
  CHECK(message[12] == 'x');
  CHECK(std::string(fingerpost_status_text(FINGERPOST_ABSENT)) == "absent");
  CHECK(std::string(fingerpost_status_text(99)) == "unknown status");
  const fingerpost_options chosen{sizeof chosen, "no such user"};
  CHECK(fingerpost_open(segment_path().c_str(), &chosen, &opened, message.data(), message.size()) ==
        FINGERPOST_REFUSED);
  fingerpost_route route{};
  CHECK(fingerpost_wait_writable(reader, "", 0, nullptr, 0, 1'000'000'000, &route, message.data(),
                                 message.size()) == FINGERPOST_REFUSED);
  CHECK(fingerpost_wait_newer(reader, "t5", 2, nullptr, 0, ~std::uint64_t{0}, 1'000'000, &route,
                              message.data(), message.size()) == FINGERPOST_TIMEOUT);
  CHECK(std::string(message.data()).starts_with("'t5' is ACTIVE since version "));
  CHECK(fingerpost_wait_version(reader, ~std::uint64_t{0} >> 2, 0, nullptr, 0) ==
        FINGERPOST_TIMEOUT);
}

TEST_CASE_FIXTURE(Host, "a timeout may be any number") {
  fingerpost_route route{};
  for (const std::int64_t timeout : {INT64_MIN, std::int64_t{-1}, std::int64_t{0}}) {
    CHECK(fingerpost_wait_writable(reader, "t5", 2, nullptr, 0, timeout, &route, nullptr, 0) ==
          FINGERPOST_OK);
    CHECK(fingerpost_wait_writable(reader, "no-one", 6, nullptr, 0, timeout, &route, nullptr, 0) ==
          FINGERPOST_TIMEOUT);
    CHECK(fingerpost_wait_version(reader, ~std::uint64_t{0} >> 2, timeout, nullptr, 0) ==
          FINGERPOST_TIMEOUT);
  }
  CHECK(fingerpost_wait_writable(reader, "t5", 2, "an object", 9, INT64_MAX, &route, nullptr, 0) ==
        FINGERPOST_OK);
  CHECK(fingerpost_wait_newer(reader, "t5", 2, nullptr, 0, route.epoch - 1, INT64_MAX, &route,
                              nullptr, 0) == FINGERPOST_OK);
}

TEST_CASE_FIXTURE(Host, "what is asked by C is what is asked by C++") {
  const Reader other = SyncerHost::reader();
  std::vector<std::string> names;
  for (int i = 0; i < 400; ++i) names.push_back("t" + std::to_string(i));
  names.insert(names.end(), {"bucket:1", "", std::string(300, 'a'), std::string("a\0b", 3)});
  std::vector<fingerpost_text> ids;
  for (const std::string& name : names) ids.push_back({name.data(), name.size()});
  std::vector<fingerpost_route> many(ids.size());
  REQUIRE(fingerpost_resolve_many(reader, ids.data(), ids.size(), many.data()) == FINGERPOST_OK);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Route expected = other.resolve(names[i]);
    fingerpost_route route{};
    REQUIRE(fingerpost_resolve(reader, ids[i].data, ids[i].length, &route) == FINGERPOST_OK);
    CHECK(std::memcmp(&route, &many[i], sizeof route) == 0);
    CHECK(route.answer == static_cast<int>(expected.answer()));
    CHECK(route.epoch == expected.epoch());
    CHECK(route.writable == expected.writable());
    fingerpost_shard shard{};
    shard.struct_size = sizeof shard;
    const std::int32_t status = fingerpost_route_shard(&route, &shard);
    CHECK((status == FINGERPOST_OK) == expected.found());
    if (status != FINGERPOST_OK) continue;
    CHECK(text_of(shard.name) == expected.shard().name());
    CHECK(text_of(shard.primary) == expected.shard().primary());
    CHECK(shard.replica_count == expected.shard().replica_count());
    fingerpost_text replica{};
    CHECK(fingerpost_route_replica(&route, shard.replica_count, &replica) == FINGERPOST_UNKNOWN);
    for (std::uint32_t k = 0; k < shard.replica_count; ++k) {
      REQUIRE(fingerpost_route_replica(&route, k, &replica) == FINGERPOST_OK);
      CHECK(text_of(replica) == expected.shard().replica(k));
    }
    CHECK(fingerpost_route_target(&route, &shard) == FINGERPOST_UNKNOWN);
  }
  std::array<fingerpost_route, 2> parts{};
  std::size_t count = 0;
  REQUIRE(fingerpost_resolve_all(reader, "t8", 2, parts.data(), parts.size(), &count) ==
          FINGERPOST_OK);
  CHECK(count == 3);
  CHECK(parts[1].source == FINGERPOST_SOURCE_PART);
  REQUIRE(fingerpost_resolve_all(reader, "t8", 2, nullptr, 0, &count) == FINGERPOST_OK);
  CHECK(count == 3);
  std::uint64_t version = 0;
  std::uint64_t undetermined = 1;
  std::int64_t age = -1;
  CHECK(fingerpost_served_version(reader, &version) == FINGERPOST_OK);
  CHECK(version == other.version());
  CHECK(fingerpost_undetermined_count(reader, &undetermined) == FINGERPOST_OK);
  CHECK(undetermined == 0);
  CHECK(fingerpost_age(reader, &age) == FINGERPOST_OK);
  CHECK(age >= 0);
  CHECK(fingerpost_poll(reader) == 0);
  CHECK(std::string(fingerpost_library_version()) == FINGERPOST_VERSION);
}

TEST_CASE_FIXTURE(Host, "threads share a reader, and a child goes on with it") {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (int i = 0; i < 2'000; ++i) {
        const std::string id = "t" + std::to_string(i % 300);
        fingerpost_route route{};
        CHECK(fingerpost_resolve(reader, id.data(), id.size(), &route) == FINGERPOST_OK);
        CHECK(route.answer == (id == "t8" ? FINGERPOST_SPLIT : FINGERPOST_FOUND));
      }
    });
  }
  turn_for(std::chrono::milliseconds(50));
  threads.clear();
  const pid_t child = ::fork();
  if (child == 0) {
    fingerpost_route route{};
    const bool found = fingerpost_resolve(reader, "t5", 2, &route) == FINGERPOST_OK &&
                       route.answer == FINGERPOST_FOUND;
    ::_exit(found ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
