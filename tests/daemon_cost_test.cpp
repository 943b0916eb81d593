// What fingerpostd and its workers cost: memory, processor, system calls. And what a worker does
// with processes and limits of its own.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "tests/child_process.h"
#include "tests/daemon_host.h"
#include "tests/uuid_tenants.h"

using namespace fingerpost;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

// Processor time that a process has used, all its threads together, to the nanosecond.
std::chrono::nanoseconds cpu_time_of(pid_t pid) {
  std::chrono::nanoseconds used{0};
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::int64_t nanoseconds = 0;
    std::ifstream(task.path() / "schedstat") >> nanoseconds;
    used += std::chrono::nanoseconds(nanoseconds);
  }
  return used;
}

}  // namespace

TEST_CASE(
    "tenants by UUID: at most 85 bytes each in the table, 95 allocated, 190 after a rebuild") {
  constexpr int kHalf = 100'000;
  DaemonHost host;
  auto ids = add_uuids(host, kHalf, 1);
  host.serve();
  const Reader worker = host.reader();
  const auto check = [&](int tenants, double allocated_most) {
    const double table = static_cast<double>(worker.status().table_bytes) / tenants;
    const double allocated = static_cast<double>(allocated_bytes_of(host.segment_path())) / tenants;
    // The fixed part, 2 MiB steps and all: of a million tenants they are next to nothing.
    const double fixed = 6.0 * 1024 * 1024 / tenants;
    MESSAGE(tenants << " tenants: " << table << " bytes each in the table, " << allocated
                    << " allocated");
    CHECK(table <= 85.0);
    CHECK(allocated <= allocated_most + fixed);
  };
  check(kHalf, 95.0);
  const auto more = add_uuids(host, kHalf, 2);
  REQUIRE(sees(worker, more.back(), "alpha", 30s));
  check(2 * kHalf, 190.0);
  for (const std::string& id : ids) REQUIRE(worker.resolve(id).found());
}

TEST_CASE("a worker's own memory does not grow with the directory") {
  DaemonHost host;
  const auto ids = add_uuids(host, 50'000, 3);
  host.serve();
  CHECK(in_child([&]() -> std::string {
          const auto before = kib_of(::getpid(), "RssAnon");
          const auto worker = Reader::open(host.segment_path());
          if (!worker.ok()) return worker.status().message();
          for (const std::string& id : ids) {
            if (!worker->resolve(id).found()) return id + " was not found";
          }
          const auto after = kib_of(::getpid(), "RssAnon");
          return after > before + 64 ? "RssAnon grew by " + std::to_string(after - before) + " KiB"
                                     : "";
        }) == "");
}

TEST_CASE("an idle daemon uses less than half a percent of a core") {
  DaemonHost host;
  host.add_tenants(1'000);
  host.start({"--poll-interval", "1s"});
  REQUIRE(eventually([&] { return host.serving() == "caught up"; }));
  std::this_thread::sleep_for(1s);  // the first snapshot
  const auto before = cpu_time_of(host.daemon().pid());
  std::this_thread::sleep_for(4s);
  const auto used = cpu_time_of(host.daemon().pid()) - before;
  MESSAGE("used " << static_cast<double>(used.count()) / 1e6 << " ms of 4,000 ms");
  CHECK(used > 0ns);
  CHECK(used < 20ms);
}

TEST_CASE("a million lookups make no system call, and what is mapped can't be written") {
  DaemonHost host;
  host.add_tenants(1'000);
  host.serve();
  const std::string trace = host.file("trace");
  const Ran ran = run_program("/usr/bin/strace", {"-f", "-o", trace, FINGERPOST_LOOKUPS,
                                                  host.segment_path(), "1000000", "t7"});
  if (ran.status == 127) {
    MESSAGE("not tried: there is no strace");
    return;
  }
  REQUIRE_MESSAGE(ran.status == 0, ran.err);
  std::ifstream lines(trace);
  bool in_lookups = false;
  int calls = 0;
  int writable = 0;
  int mapped = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"begin\\n\"") != std::string::npos) {
      in_lookups = true;
    } else if (line.find("\"end\\n\"") != std::string::npos) {
      in_lookups = false;
    } else if (in_lookups) {
      ++calls;
      MESSAGE(line);
    }
    if (line.find(host.segment_path()) != std::string::npos) {
      CHECK(line.find("O_CREAT") == std::string::npos);
      CHECK(line.find("O_RDWR") == std::string::npos);
    }
    if (line.find("MAP_SHARED") != std::string::npos) {
      ++mapped;
      writable += line.find("PROT_WRITE") != std::string::npos;
    }
  }
  CHECK(calls == 0);
  CHECK(mapped == 1);
  CHECK(writable == 0);
}

TEST_CASE("children of a worker go on with its reader, and their ends do not touch it") {
  DaemonHost host;
  host.approve_everything();
  host.add_tenants(100);
  host.serve();
  const Reader worker = host.reader();
  std::vector<pid_t> children;
  for (int i = 0; i < 64; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      if (i % 2 == 0) ::_exit(worker.resolve("t1").found() ? 0 : 1);
      // These live on, and follow what happens to the segment after the fork.
      ::_exit(sees(worker, "t1", "beta", 20s) ? 0 : 1);
    }
    children.push_back(child);
  }
  fs::remove(host.segment_path());
  REQUIRE(eventually([&] { return fs::exists(host.segment_path()); }));
  host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't1'");
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(sees(worker, "t1", "beta"));
}

TEST_CASE("a worker with no address space for a successor serves what it has, and then follows") {
  DaemonHost host;
  host.approve_everything();
  host.add_tenants(100);
  host.serve();
  CHECK(in_child([&]() -> std::string {
          const Reader worker = host.reader();
          rlimit before{};
          ::getrlimit(RLIMIT_AS, &before);
          const rlimit tight{kib_of(::getpid(), "VmSize") * 1024 + (64U << 20), before.rlim_max};
          ::setrlimit(RLIMIT_AS, &tight);
          fs::remove(host.segment_path());
          if (!eventually([&] { return fs::exists(host.segment_path()); })) return "no successor";
          host.sql("UPDATE shard_directory SET shard_id = 'beta' WHERE entry_id = 't1'");
          for (int i = 0; i < 150; ++i) {
            worker.poll();
            if (worker.resolve("t1").shard().name() != "alpha") return "followed all the same";
            std::this_thread::sleep_for(10ms);
          }
          if (!worker.stale()) return "is not stale";
          ::setrlimit(RLIMIT_AS, &before);
          return sees(worker, "t1", "beta") ? "" : "did not follow";
        }) == "");
}
