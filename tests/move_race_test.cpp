// Moves under contention and with lost answers, on one file: never two owners, and never one who
// thinks that he won and did not.
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "tests/child_process.h"
#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_import.h"
#include "tools/directory_moves.h"
#include "tools/directory_removals.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

// In memory that children share with their parent.
template <class T>
class Shared {
 public:
  Shared() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    value_ = new (memory) T{};
  }
  ~Shared() { ::munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() { return value_; }

 private:
  T* value_;
};

// Waits for what another process or thread brings about; throws rather than hang.
void wait_for(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("waited a minute");
    std::this_thread::sleep_for(200us);
  }
}

constexpr int kRounds = 1'000;

struct Ring {
  std::atomic<int> arrived{0};
  std::array<std::atomic<int>, 2> wins{};
};

// Both meet before each round, and try to be the one who moves 't' to the other shard.
void run_mover(const MovingDirectory& made, Ring& ring, int mine) {
  const auto directory = made.open();
  const std::string who = mine == 0 ? "mia@h1" : "bob@h2";
  for (int round = 0; round < kRounds; ++round) {
    const std::string to = find_entry(*directory, "t")->shard == "s1" ? "s2" : "s1";
    ++ring.arrived;
    wait_for([&] { return ring.arrived >= 2 * (2 * round + 1); });
    const auto marked = mark_move(*directory, "t", to, 15min, {who, {}});
    if (marked) {
      ++ring.wins[static_cast<std::size_t>(mine)];
      if (!freeze_move(*directory, "t", {who, {}})) throw std::runtime_error("lost its freeze");
      if (!flip_move(*directory, "t", {who, marked->token})) throw std::runtime_error("lost");
    } else if (flip_move(*directory, "t", {who, {}}).ok() ||
               abort_move(*directory, "t", {who, {}}).ok()) {
      throw std::runtime_error("the loser moved it");
    }
    ++ring.arrived;
    wait_for([&] { return ring.arrived >= 2 * (2 * round + 2); });
  }
}

Status import_one(Directory& directory, const std::string& id, const std::string& shard) {
  auto input =
      std::make_shared<std::istringstream>("entry_id,shard_id\n" + id + "," + shard + "\n");
  const auto report =
      import_directory(directory,
                       [input](char* bytes, std::size_t size) -> Result<std::size_t> {
                         input->read(bytes, static_cast<std::streamsize>(size));
                         return static_cast<std::size_t>(input->gcount());
                       },
                       {});
  if (!report) return report.status();
  if (report->fault_count == 0) return {};
  return {Code::conflict, report->faults.front().message};
}

// What changes which rule `id` resolves by, as one attempt.
using Attempt = Status (*)(Directory&, const std::string& id, const std::string& shard);

struct Contender {
  const char* name;
  Attempt prepare;  // nullptr: an id without an entry is what the attempt takes
  Attempt attempt;
};

const Contender kContenders[] = {
    {"create", nullptr,
     [](Directory& d, const std::string& id, const std::string& shard) {
       return create_tenant(d, id, shard).status();
     }},
    {"import", nullptr, import_one},
    {"mark", nullptr,
     [](Directory& d, const std::string& id, const std::string& shard) {
       return mark_move(d, id, shard == "s1" ? "s2" : "s1", 15min, {}).status();
     }},
    {"forget",
     [](Directory& d, const std::string& id, const std::string& shard) {
       return create_tenant(d, id, shard).status();
     },
     [](Directory& d, const std::string& id, const std::string&) {
       return forget_tenant(d, id).status();
     }},
    {"purge",
     [](Directory& d, const std::string& id, const std::string&) {
       return delete_tenant(d, id).status();
     },
     [](Directory& d, const std::string& id, const std::string&) {
       return purge_tenant(d, id, 0ms).status();
     }},
};

struct Tally {
  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  std::atomic<bool> over{false};
};

// The nth id that the contender takes while the bucket is on `shard`.
std::string id_of(const Contender& contender, const std::string& shard, int n) {
  return fmt::format("{}-{}-{}", contender.name, shard, n);
}

constexpr int kPrepared = 400;  // on each shard; a race of eight moves takes a few dozen

void prepare(Directory& directory, const Contender& contender) {
  for (int n = 0; contender.prepare != nullptr && n < kPrepared; ++n) {
    for (const char* shard : {"s1", "s2"}) {
      REQUIRE(contender.prepare(directory, id_of(contender, shard, n), shard).ok());
    }
  }
}

void contend(const MovingDirectory& made, const Contender& contender, Tally& tally) {
  const auto directory = made.open();
  std::map<std::string, int> taken;
  while (!tally.over) {
    const std::string shard = find_entry(*directory, "bucket:0")->shard;
    int& n = taken[shard];
    const Status status = contender.attempt(*directory, id_of(contender, shard, n), shard);
    if (status.ok()) {
      ++tally.done;
      ++n;
    } else if (status.message().find("bucket:0 answers for") != std::string::npos) {
      ++tally.refused;
    }
    std::this_thread::sleep_for(500us);
  }
}

// The moves of the bucket; each phase lasts until the contender has been met in it.
void move_bucket(Directory& directory, Tally& tally, int moves) {
  const auto met = [&](std::atomic<int>& count) {
    const int before = count;
    wait_for([&, before] { return count > before; });
  };
  for (int i = 0; i < moves; ++i) {
    met(tally.done);
    const std::string to = find_entry(directory, "bucket:0")->shard == "s1" ? "s2" : "s1";
    const auto marked = mark_move(directory, "bucket:0", to, 15min, {"mia@h1", {}});
    REQUIRE_MESSAGE(marked.ok(), marked.status().message());
    if (i % 2 == 0) met(tally.refused);
    REQUIRE(freeze_move(directory, "bucket:0", {"mia@h1", {}}).ok());
    if (i % 2 == 1) met(tally.refused);
    REQUIRE(flip_move(directory, "bucket:0", {"mia@h1", {}}).ok());
  }
}

// Entries that began or ended at a version at which the bucket was being moved.
constexpr const char* kUnderAMove =
    "SELECT count(*) FROM directory_history AS h WHERE h.kind = 'entry' "
    "AND h.entry_id NOT GLOB 'bucket:*' AND (h.shard_before IS NULL OR h.shard_after IS NULL) "
    "AND 'ACTIVE' <> (SELECT b.state_after FROM directory_history AS b WHERE b.entry_id = "
    "'bucket:0' AND b.version < h.version ORDER BY b.version DESC LIMIT 1)";

// Every later fsync of this process fails.
void refuse_fsync() {
  std::array<sock_filter, 5> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    throw std::runtime_error("no seccomp filter");
  }
}

std::int64_t flips_of(Directory& directory, const std::string& id) {
  SqliteStatement count = directory.db().prepare(
      "SELECT count(*) FROM directory_history WHERE entry_id = ? AND verb = 'move flip'");
  count.bind(id).step();
  return count.integer(0);
}

}  // namespace

TEST_CASE("two movers race 1,000 times for one tenant: one wins each time, and he moves it") {
  MovingDirectory made("/dev/shm");
  made.with_buckets(1);
  REQUIRE(create_tenant(*made.directory, "t", "s1").ok());
  made.directory.reset();  // no connection crosses a fork
  Shared<Ring> ring;
  std::string rival;
  std::thread other([&] {
    rival = in_child([&] {
      run_mover(made, *ring.operator->(), 1);
      return std::string();
    });
  });
  const std::string complaint = in_child([&] {
    run_mover(made, *ring.operator->(), 0);
    return std::string();
  });
  other.join();
  CHECK(complaint.empty());
  CHECK(rival.empty());
  CHECK(ring->wins[0] + ring->wins[1] == kRounds);
  made.directory = made.open();
  CHECK(flips_of(*made.directory, "t") == kRounds);
  // Marked, frozen and flipped by one and the same, one after the other.
  CHECK(made.directory->db().integer(
            "SELECT count(*) FROM (SELECT verb, who, lag(verb) OVER w AS verb1, lag(who) OVER w AS "
            "who1, lag(verb, 2) OVER w AS verb2, lag(who, 2) OVER w AS who2 FROM directory_history "
            "WHERE entry_id = 't' WINDOW w AS (ORDER BY version)) WHERE verb = 'move flip' AND "
            "verb1 = 'move freeze' AND verb2 = 'move mark' AND who = who1 AND who = who2") ==
        kRounds);
}

TEST_CASE("create, import, mark, forget and purge race with the moves of their bucket, and wait") {
  for (const Contender& contender : kContenders) {
    CAPTURE(std::string(contender.name));
    MovingDirectory made("/dev/shm");
    Directory& directory = made.with_buckets(1);
    prepare(directory, contender);
    Tally tally;
    std::string complaint;
    std::thread thread([&] {
      try {
        contend(made, contender, tally);
      } catch (const std::exception& thrown) {
        complaint = thrown.what();
      }
    });
    try {
      move_bucket(directory, tally, 8);
    } catch (const std::exception& thrown) {
      FAIL_CHECK(std::string(thrown.what()));
    }
    tally.over = true;
    thread.join();
    CHECK(complaint.empty());
    CHECK(flips_of(directory, "bucket:0") == 8);
    CHECK(tally.done > 0);
    CHECK(tally.refused > 0);
    CHECK(directory.db().integer(kUnderAMove) == 0);
    // Plain SQL knows no buckets, and shows that this would have been found.
    const std::string to = find_entry(directory, "bucket:0")->shard == "s1" ? "s2" : "s1";
    REQUIRE(mark_move(directory, "bucket:0", to, 15min, {}).ok());
    made.sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('by SQL', 's1')");
    CHECK(directory.db().integer(kUnderAMove) == 1);
  }
}

TEST_CASE("a flip in flight across the deadline, and a reap at that moment: one of them happens") {
  MovingDirectory made("/dev/shm");
  Directory& directory = made.with_buckets(1);
  REQUIRE(create_tenant(directory, "t", "s1").ok());
  for (int round = 0; round < 40; ++round) {
    const std::string from = find_entry(directory, "t")->shard;
    const std::string to = from == "s1" ? "s2" : "s1";
    const auto marked = mark_move(directory, "t", to, 20ms, {"mia@h1", {}});
    REQUIRE(marked.ok());
    REQUIRE(freeze_move(directory, "t", {"mia@h1", {}}).ok());
    std::uint64_t reaped = 0;
    std::thread reaper([&] {
      const auto mine = made.open();
      while (find_move(*mine, "t")) reaped += reap_moves(*mine, "cron@h3").moves.size();
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + round / 2));
    const auto flipped = flip_move(directory, "t", {"mia@h1", marked->token});
    reaper.join();
    CHECK(flipped.ok() == (reaped == 0));
    CHECK(made.entry("t") == (flipped ? to : from) + " ACTIVE");
    if (!flipped) {
      CHECK(flipped.status().message().find("was aborted at version") != std::string::npos);
    }
  }
}

TEST_CASE("an answer that is never seen: the repeat with the token brings it again") {
  ::unsetenv("FINGERPOST_DIRECTORY");
  MovingDirectory made;
  Directory& directory = made.with_buckets(1);
  const auto marked = mark_move(directory, "t", "s2", 15min, {});
  REQUIRE(marked.ok());
  REQUIRE(freeze_move(directory, "t", {}).ok());
  const std::string flip = fmt::format("{} move flip t --token {} --directory {}",
                                       FINGERPOST_PROGRAM, marked->token, made.path);
  CHECK(run_program("/bin/sh", {"-c", flip + " > /dev/full"}).status == 4);
  CHECK(made.entry("t") == "s2 ACTIVE");
  const Ran again = run_program("/bin/sh", {"-c", flip});
  CHECK(again.status == 0);
  CHECK(again.out == fmt::format("version {}\n", directory.version()));
  CHECK(flips_of(directory, "t") == 1);
}

TEST_CASE(
    "a COMMIT that the disk did not confirm says to repeat with the token, and that flips once") {
  MovingDirectory made;
  made.with_buckets(1);
  const auto marked = mark_move(*made.directory, "t", "s2", 15min, {});
  REQUIRE(marked.ok());
  REQUIRE(freeze_move(*made.directory, "t", {}).ok());
  made.directory.reset();
  const std::string complaint = in_child([&] {
    const auto directory = made.open();
    refuse_fsync();
    try {
      return std::string(flip_move(*directory, "t", {}) ? "it was flipped" : "it was refused");
    } catch (const SqliteError& error) {
      return std::string(error.what());
    }
  });
  CAPTURE(complaint);
  CHECK(complaint.find("may have been committed: before anything else, repeat move flip t with "
                       "--token " +
                       marked->token) != std::string::npos);
  made.directory = made.open();
  REQUIRE(flip_move(*made.directory, "t", {"x", marked->token}).ok());
  CHECK(made.entry("t") == "s2 ACTIVE");
  CHECK(flips_of(*made.directory, "t") == 1);
}

TEST_CASE("a mover that is killed at any moment of its flip: the repeat ends as one flip") {
  MovingDirectory made("/dev/shm");
  made.with_buckets(1);
  for (int round = 0; round < 40; ++round) {
    const std::string id = fmt::format("t{}", round);
    const auto marked = mark_move(*made.directory, id, "s2", 15min, {});
    REQUIRE(marked.ok());
    REQUIRE(freeze_move(*made.directory, id, {}).ok());
    made.directory.reset();
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        (void)flip_move(*made.open(), id, {"x", marked->token});
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::pause();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    made.directory = made.open();
    const auto flipped = flip_move(*made.directory, id, {"x", marked->token});
    REQUIRE_MESSAGE(flipped.ok(), flipped.status().message());
    CHECK(made.entry(id) == "s2 ACTIVE");
    CHECK(made.epoch(id) == flipped->version);
    CHECK(flips_of(*made.directory, id) == 1);
  }
}

}  // namespace fingerpost
