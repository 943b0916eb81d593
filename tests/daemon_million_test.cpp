// A million tenants, as an installation of size has them: what they take, how fast a change is seen
// while the table grows under a running daemon, and how fast the next daemon goes on.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/child_process.h"
#include "tests/daemon_host.h"
#include "tests/uuid_tenants.h"

using namespace fingerpost;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTenants = 1'000'000;

double milliseconds_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}

// Moves one tenant to and fro by plain SQL; how long each commit took to be seen.
std::vector<double> visible_after(const DaemonHost& host, const Reader& worker,
                                  const std::function<bool()>& go_on) {
  std::vector<double> took;
  SqliteDb db = host.db();
  for (bool to_beta = true; go_on(); to_beta = !to_beta) {
    const std::string shard = to_beta ? "beta" : "alpha";
    db.exec("UPDATE shard_directory SET shard_id = '" + shard + "' WHERE entry_id = 'probe'");
    const auto committed = Clock::now();
    while (worker.resolve("probe").shard().name() != shard) {
      REQUIRE(milliseconds_since(committed) < 5'000);
      std::this_thread::sleep_for(100us);
    }
    took.push_back(milliseconds_since(committed));
    std::this_thread::sleep_for(2ms);
  }
  std::sort(took.begin(), took.end());
  return took;
}

}  // namespace

TEST_CASE("a million tenants at the start: their bytes, a worker's memory, growth, adoption") {
  DaemonHost host;
  host.approve_everything();
  host.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('probe', 'alpha')");
  const auto ids = add_uuids(host, kTenants, 1);
  host.serve();
  const Reader worker = host.reader();
  const auto per_tenant = [](std::uint64_t bytes, int tenants) {
    return static_cast<double>(bytes) / tenants;
  };

  const double table = per_tenant(worker.status().table_bytes, kTenants);
  const double allocated = per_tenant(allocated_bytes_of(host.segment_path()), kTenants);
  MESSAGE(table << " bytes each in the table, " << allocated << " allocated");
  CHECK(table <= 85.0);
  CHECK(allocated <= 95.0);
  CHECK(in_child([&]() -> std::string {
          const auto before = kib_of(::getpid(), "RssAnon");
          const auto own = Reader::open(host.segment_path());
          for (const std::string& id : ids) {
            if (!own->resolve(id).found()) return id + " was not found";
          }
          const auto after = kib_of(::getpid(), "RssAnon");
          return after > before + 64 ? "RssAnon grew by " + std::to_string(after - before) + " KiB"
                                     : "";
        }) == "");

  // The table grows: enough new tenants at once for another one, then more by the thousand while
  // the copy goes on.
  const std::uint64_t rebuilds = count_of(worker, Counter::rebuilds);
  const auto more = add_uuids(host, 100'000, 2);
  REQUIRE(sees(worker, more.back(), "alpha", 30s));
  std::uint64_t round = 3;
  std::atomic<bool> grown{false};
  std::thread adder([&] {
    while (count_of(worker, Counter::rebuilds) == rebuilds && round < 103)
      add_uuids(host, 5'000, round++);
    grown = true;
  });
  const auto took = visible_after(host, worker, [&] { return !grown.load(); });
  adder.join();
  CHECK(count_of(worker, Counter::rebuilds) > rebuilds);
  REQUIRE(took.size() > 20);
  MESSAGE("during the growth, commit to visible: p50 "
          << took[took.size() / 2] << " ms, p99 " << took[took.size() * 99 / 100] << " ms, most "
          << took.back() << " ms of " << took.size());
  CHECK(took[took.size() / 2] < 50.0);

  const int tenants = static_cast<int>(count_of(worker, Counter::entries));
  MESSAGE(tenants << " tenants: " << per_tenant(allocated_bytes_of(host.segment_path()), tenants)
                  << " bytes each allocated after the rebuild");
  CHECK(per_tenant(worker.status().table_bytes, tenants) <= 85.0 * 1.25);
  CHECK(per_tenant(allocated_bytes_of(host.segment_path()), tenants) <= 190.0);

  host.kill();
  CHECK(worker.resolve(ids.front()).found());
  const auto restarted = Clock::now();
  host.serve();
  const double adopted = milliseconds_since(restarted);
  MESSAGE("adopted and caught up after " << adopted << " ms");
  CHECK(adopted < 1'000.0);
  CHECK(count_of(worker, Counter::adoptions) == 1);
  for (const std::string& id : ids) REQUIRE(worker.resolve(id).found());
}

TEST_CASE("a million tenants imported under a running daemon take no more than at the start") {
  DaemonHost host;
  host.serve();
  const Reader worker = host.reader();
  const auto ids = add_uuids(host, kTenants, 9);
  REQUIRE(sees(worker, ids.back(), "alpha", 60s));
  const double allocated = static_cast<double>(allocated_bytes_of(host.segment_path())) / kTenants;
  const double table = static_cast<double>(worker.status().table_bytes) / kTenants;
  MESSAGE(table << " bytes each in the table, " << allocated << " allocated");
  CHECK(table <= 85.0);
  CHECK(allocated <= 190.0);
  for (const std::string& id : ids) REQUIRE(worker.resolve(id).found());
}
