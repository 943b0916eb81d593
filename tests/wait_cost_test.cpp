// What waiting costs: system calls while nothing happens, and the time from a change to the last of
// those who waited for it.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "reader/reader.h"
#include "shm/boot_clock.h"
#include "shm/owned_segment.h"
#include "tests/run_program.h"
#include "tests/temp_folder.h"

using namespace fingerpost;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view kId = "acme";

// A segment that is served as by a syncer: its heart beats.
class Served {
 public:
  Served() {
    SegmentIdentity identity;
    identity.directory_id = *parse_directory_id("0f000000-0000-4000-8000-0000000000aa");
    identity.plan = SegmentPlan::make(1'000);
    identity.boot_id = *current_boot_id();
    auto made = OwnedSegment::create(path(), SegmentAccess::of_this_process(), identity);
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    segment_ = std::move(*made);
    REQUIRE(writer().publish_topology({{"s0", "db0:5432", {}, "", 100, {}}}).ok());
    REQUIRE(writer().begin_load({10, 16, FallbackKind::none, 0}, 1, 1, false).ok());
    REQUIRE(writer().load(kId, {State::active, 0, kNoShard, 1}) == Applied::changed);
    writer().switch_generation();
    writer().publish({1, 1, 1, 0});
    REQUIRE(segment_->publish_first().ok());
    heart_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        control().heartbeat_ns.store(static_cast<std::uint64_t>(boot_time_ns()), kRelease);
        std::this_thread::sleep_for(100ms);
      }
    });
  }

  std::string path() const { return folder_.file("seg"); }
  // As the syncer applies one row.
  void change() {
    ++version_;
    REQUIRE(writer().put(kId, {State::active, 0, kNoShard, version_}) == Applied::changed);
    writer().publish({1, version_, version_, 0});
  }
  std::uint64_t version() const { return version_; }

 private:
  SegmentWriter<StdAtomics>& writer() { return segment_->writer(); }
  ControlBlock<StdAtomics>& control() { return writer().memory().control(); }

  TempFolder folder_{"/dev/shm"};
  std::unique_ptr<OwnedSegment> segment_;
  std::uint64_t version_ = 1;
  std::jthread heart_;
};

// Milliseconds from each of `rounds` changes until each of `waiters` heard of it, in order.
std::vector<double> times_to_hear(Served& served, int waiters, int rounds) {
  const auto reader = Reader::open(served.path());
  REQUIRE(reader.ok());
  std::vector<std::vector<double>> heard(static_cast<std::size_t>(waiters));
  std::atomic<std::int64_t> changed_ns{0};
  std::atomic<int> done{0};
  std::atomic<int> failed{0};
  std::vector<std::jthread> threads;
  const std::uint64_t first = served.version();
  for (auto& mine : heard) {
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const auto newer = reader->wait_newer(kId, first + static_cast<std::uint64_t>(round), 60s);
        mine.push_back(static_cast<double>(boot_time_ns() - changed_ns.load()) * 1e-6);
        if (!newer.ok()) ++failed;
        ++done;
      }
    });
  }
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(round == 0 ? 300ms : 10ms);  // until all are asleep
    changed_ns = boot_time_ns();
    served.change();
    while (done < waiters * (round + 1)) std::this_thread::sleep_for(1ms);
  }
  threads.clear();
  CHECK(failed == 0);
  std::vector<double> all;
  for (const auto& mine : heard) all.insert(all.end(), mine.begin(), mine.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

// The bounds are those of a machine that does nothing else; a test must hold on a busy one as well,
// so it asks for a fiftieth of the promise and prints what it saw.
TEST_CASE("sixteen waiters hear of a change, and a thousand do") {
  Served served;
  const auto few = times_to_hear(served, 16, 100);
  const double p99 = few[few.size() * 99 / 100];
  MESSAGE("16 waiters: half within " << few[few.size() / 2] << " ms, 99 % within " << p99 << " ms");
  CHECK(p99 < 50);
  const auto many = times_to_hear(served, 1'000, 3);
  MESSAGE("1,000 waiters: half within " << many[many.size() / 2] << " ms, the last within "
                                        << many.back() << " ms");
  CHECK(many.back() < 1'900);  // by the wake, not by looking again
}

TEST_CASE("asleep it makes no system call but its futex, one every two seconds") {
  Served served;
  TempFolder folder;
  const std::string trace = folder.file("trace");
  const Ran ran = run_program("/usr/bin/strace",
                              {"-f", "-qq", "-o", trace, FINGERPOST_PROGRAM, "wait", served.path(),
                               "--newer", std::string(kId), "--epoch", "1", "--timeout", "5s"});
  if (ran.status == 127) {
    MESSAGE("not tried: there is no strace");
    return;
  }
  CHECK_MESSAGE(ran.status == 1, ran.err);
  // All between the first sleep on the segment and the last.
  std::vector<std::string> calls;
  std::ifstream lines(trace);
  for (std::string line; std::getline(lines, line);) calls.push_back(line);
  const auto is_sleep = [](const std::string& line) {
    return line.find("futex(") != std::string::npos &&
           line.find("FUTEX_WAIT,") != std::string::npos;
  };
  const auto first = std::find_if(calls.begin(), calls.end(), is_sleep);
  const auto last = std::find_if(calls.rbegin(), calls.rend(), is_sleep).base();
  REQUIRE(first != calls.end());
  for (auto call = first; call != last; ++call) CHECK_MESSAGE(is_sleep(*call), *call);
  const auto sleeps = last - first;
  MESSAGE(sleeps << " sleeps in five seconds");
  CHECK(sleeps >= 3);
  CHECK(sleeps <= 4);
}
