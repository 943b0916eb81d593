#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <random>

#include "tests/awkward_backend.h"
#include "tests/child_process.h"
#include "tests/refused_call.h"
#include "tests/snapshot_samples.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

constexpr IoOptions kPlain{IoChoice::plain, 4};
constexpr std::uint64_t kManyRecords = 100'000;  // four blocks, the last one short

std::unique_ptr<SnapshotStore> store_in(const TempFolder& folder, IoOptions io = {}) {
  auto store = SnapshotStore::open(folder.path(), "orders", io);
  REQUIRE(store.ok());
  return *std::move(store);
}

std::string sample_in(const TempFolder& folder, std::uint64_t records) {
  auto path = write_sample(*store_in(folder, kPlain), records, 42);
  REQUIRE(path.ok());
  return *path;
}

bool has_ring() {
  return SnapshotIo(IoOptions{}).stats().backend == "io_uring";
}

TEST_CASE("a snapshot is read as it was written, by the ring and by plain calls") {
  const TempFolder folder;
  std::string bytes;
  for (const IoOptions io : {IoOptions{}, kPlain}) {
    auto store = store_in(folder, io);
    const auto path = write_sample(*store, kManyRecords, 42, 7);
    REQUIRE(path.ok());
    CHECK(*path == folder.file("orders-7-42.fps"));
    struct stat found {};
    REQUIRE(::stat(path->c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0640);

    auto reader = store->read(*path);
    REQUIRE(reader.ok());
    const SnapshotInfo& info = (*reader)->info();
    const SnapshotEnd end = sample_end(42);
    CHECK(info.header.directory_id == sample_directory(1));
    CHECK(info.header.incarnation == 7);
    CHECK(info.header.cursor == end.cursor);
    CHECK(info.header.replay_from == end.replay_from);
    CHECK(info.header.last_sync_unix_ns == end.last_sync_unix_ns);
    CHECK(info.header.entries + info.header.tombstones == kManyRecords);
    CHECK(info.header.blocks() >= 3);
    CHECK(info.meta.topology == end.meta.topology);
    CHECK(info.meta.layout.directory_id == sample_directory(1));
    CHECK(info.meta.layout.hash_shards == end.meta.layout.hash_shards);
    CHECK(compare_with_samples(**reader, kManyRecords) == "");
    CHECK((*reader)->io_stats().bytes_read == info.header.blocks_bytes);

    if (!bytes.empty()) CHECK(file_bytes(*path) == bytes);
    bytes = file_bytes(*path);
    CHECK(bytes.size() == info.header.file_bytes());
  }
}

TEST_CASE("an empty directory has a snapshot too") {
  const TempFolder folder;
  const std::string path = sample_in(folder, 0);
  const auto verdict = verify_snapshot(path, {});
  REQUIRE(verdict.ok());
  CHECK(verdict->info.header.blocks() == 0);
}

TEST_CASE("blocks that end exactly, one byte early and one byte late are read back") {
  // Records of 24 bytes and a last one of any length place the end of the records where we like.
  constexpr std::size_t kRoom = kSnapshotBlockBytes - kSnapshotBlockHeadBytes;
  for (const std::size_t slack : {0U, 1U, 24U, 25U}) {
    CAPTURE(slack);
    const TempFolder folder;
    auto store = store_in(folder, kPlain);
    auto writer = store->write(sample_directory(1), 1);
    REQUIRE(writer.ok());
    std::size_t used = 0;
    std::uint64_t records = 0;
    for (; kRoom - used > 200; used += 24, ++records) {
      REQUIRE((*writer)->append_bucket(0, 1, 0, kNoSnapshotShard, 1).ok());
    }
    const std::string id(kRoom - used - 20 - slack, 'x');
    REQUIRE((*writer)->append_entry(id, 1, 0, kNoSnapshotShard, 1).ok());
    REQUIRE((*writer)->append_bucket(1, 1, 0, kNoSnapshotShard, 1).ok());
    REQUIRE((*writer)->finish(sample_end(1)).ok());
    const auto verdict = verify_snapshot((*writer)->path(), kPlain);
    REQUIRE(verdict.ok());
    CHECK(verdict->info.header.entries == records + 2);
    CHECK(verdict->info.header.blocks() == (slack >= 24 ? 1 : 2));
  }
}

TEST_CASE("one flipped bit anywhere makes the whole file refused") {
  const TempFolder folder;
  const std::string path = sample_in(folder, 4'000);
  const std::string good = file_bytes(path);
  const std::string bad_path = folder.file("bad.fps");
  write_file(bad_path, good);
  REQUIRE(verify_snapshot(bad_path, kPlain).ok());
  std::mt19937 random(1);
  const UniqueFd file(::open(bad_path.c_str(), O_WRONLY | O_CLOEXEC));
  for (int i = 0; i < 1'000; ++i) {
    const std::size_t at = random() % good.size();
    const char flipped = static_cast<char>(good[at] ^ (1 << random() % 8));
    REQUIRE(::pwrite(file.get(), &flipped, 1, static_cast<off_t>(at)) == 1);
    CAPTURE(at);
    CHECK_FALSE(verify_snapshot(bad_path, kPlain).ok());
    REQUIRE(::pwrite(file.get(), &good[at], 1, static_cast<off_t>(at)) == 1);
  }
  CHECK(verify_snapshot(bad_path, kPlain).ok());
}

TEST_CASE("a file cut anywhere, or cut and filled with zeros, is refused") {
  const TempFolder folder;
  const std::string path = sample_in(folder, kManyRecords);
  const std::string good = file_bytes(path);
  std::vector<std::size_t> cuts;
  for (std::size_t at = 0; at < good.size(); at += 4'096) cuts.push_back(at);
  for (std::size_t n = 1; n <= 64; ++n) cuts.push_back(good.size() - n);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const auto size = static_cast<off_t>(good.size());
  for (const std::size_t at : cuts) {
    CAPTURE(at);
    const std::string_view lost = std::string_view(good).substr(at);
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(at)) == 0);
    CHECK_FALSE(verify_snapshot(path, kPlain).ok());
    // The length survived the power loss, the last pages did not.
    REQUIRE(::ftruncate(file.get(), size) == 0);
    const bool differs = lost.find_first_not_of('\0') != std::string_view::npos;
    if (at % (1 << 18) == 0 || at + 64 >= good.size()) {
      CHECK(verify_snapshot(path, kPlain).ok() != differs);
    }
    REQUIRE(::pwrite(file.get(), lost.data(), lost.size(), static_cast<off_t>(at)) ==
            static_cast<ssize_t>(lost.size()));
  }
  CHECK(verify_snapshot(path, kPlain).ok());
}

TEST_CASE("a file of zeros, a longer one, two blocks exchanged, a folder, a pipe: all refused") {
  const TempFolder folder;
  const std::string path = sample_in(folder, kManyRecords);
  const std::string good = file_bytes(path);
  write_file(path, std::string(good.size(), '\0'));
  CHECK(verify_snapshot(path, kPlain).status().code() == Code::corrupt);
  write_file(path, good + "x");
  CHECK(verify_snapshot(path, kPlain).status().code() == Code::corrupt);
  std::string exchanged = good;
  std::swap_ranges(exchanged.begin() + 4'096, exchanged.begin() + 4'096 + (1 << 20),
                   exchanged.begin() + 4'096 + (1 << 20));
  write_file(path, exchanged);
  CHECK(verify_snapshot(path, kPlain).status().code() == Code::corrupt);
  CHECK(verify_snapshot(folder.path(), kPlain).status().code() == Code::corrupt);
  REQUIRE(::mkfifo(folder.file("pipe.fps").c_str(), 0600) == 0);
  CHECK(verify_snapshot(folder.file("pipe.fps"), kPlain).status().code() == Code::corrupt);
  CHECK(verify_snapshot(folder.file("none.fps"), kPlain).status().code() == Code::absent);
}

TEST_CASE("a block from another snapshot of the same directory does not pass") {
  const TempFolder folder;
  auto store = store_in(folder, kPlain);
  const auto one = write_sample(*store, kManyRecords, 1);
  auto writer = store->write(sample_directory(1), 1);
  REQUIRE(writer.ok());
  for (std::uint64_t n = 0; n < kManyRecords; ++n) {
    const std::string id = sample_id(n);
    SnapshotRecord record = sample_record(n, id);
    if (record.kind == RecordKind::entry) record.state ^= 1;
    REQUIRE((*writer)->append(record).ok());
  }
  REQUIRE((*writer)->finish(sample_end(2)).ok());
  std::string mixed = file_bytes(*one);
  mixed.replace(4'096, 1 << 20, file_bytes((*writer)->path()).substr(4'096, 1 << 20));
  write_file(*one, mixed);
  const auto verdict = verify_snapshot(*one, kPlain);
  REQUIRE_FALSE(verdict.ok());
  CHECK(verdict.status().message().find("chain of digests") != std::string::npos);
}

TEST_CASE("short, cancelled and refused I/O writes and reads the same bytes") {
  const TempFolder folder;
  const std::string good = file_bytes(sample_in(folder, kManyRecords));
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    Awkwardness how;
    how.shortens = true;
    how.cancels = true;
    how.repeats_answers = true;
    if (seed % 3 == 1) how.starts_until_fault = static_cast<int>(seed);
    how.keeps_buffers = seed % 3 == 1 && seed % 2 == 0;
    const auto io = [&] {
      return std::make_unique<SnapshotIo>(5, std::make_unique<AwkwardBackend>(how, seed));
    };
    auto writer = SnapshotWriter::create(folder.path(), "odd", sample_directory(1), 1, io());
    REQUIRE(writer.ok());
    REQUIRE(append_samples(**writer, 0, kManyRecords).ok());
    REQUIRE((*writer)->finish(sample_end(42)).ok());
    CHECK(file_bytes((*writer)->path()) == good);
    auto reader = SnapshotReader::open((*writer)->path(), io());
    REQUIRE(reader.ok());
    CHECK(compare_with_samples(**reader, kManyRecords) == "");
  }
}

TEST_CASE("a container that refuses any io_uring call with any errno gets the same snapshot") {
  if (!has_ring()) return;
  const TempFolder folder("/dev/shm");
  const std::string good = file_bytes(sample_in(folder, 100));
  const std::array<std::pair<long, std::string_view>, 3> calls{{
      {SYS_io_uring_setup, "io_uring_setup"},
      {SYS_io_uring_register, "io_uring_register"},
      {SYS_io_uring_enter, "io_uring_enter"},
  }};
  for (const auto& call : calls) {
    CAPTURE(call.second);
    const std::string complaint = in_child([&]() -> std::string {
      for (int error = 1; error < 134; ++error) {
        refuse_system_call(call.first,
                           error);  // of several filters the latest one's errno is given
        auto store = SnapshotStore::open(folder.path(), "orders", {});
        auto writer = (*store)->write(sample_directory(1), 1);
        if (Status s = append_samples(**writer, 0, 100); !s.ok()) return s.message();
        if (Status s = (*writer)->finish(sample_end(42)); !s.ok()) return s.message();
        const IoStats& stats = (*writer)->io_stats();
        if (stats.backend != "plain" || stats.ring_fault.call != call.second ||
            stats.ring_fault.error != error) {
          return fmt::format("errno {}: backend {}, fault {} {}", error, stats.backend,
                             stats.ring_fault.call, stats.ring_fault.error);
        }
        if (file_bytes((*writer)->path()) != good)
          return fmt::format("errno {}: other bytes", error);
        auto reader = (*store)->read((*writer)->path());
        if (auto c = compare_with_samples(**reader, 100); !c.empty()) return c;
      }
      return "";
    });
    CHECK(complaint == "");
  }
}

TEST_CASE("a ring that is forbidden in the middle of a snapshot is left without a trace") {
  if (!has_ring()) return;
  const TempFolder folder;
  const std::string good = file_bytes(sample_in(folder, kManyRecords));
  for (const int error : {EPERM, EAGAIN, EINTR, EBUSY}) {
    CAPTURE(error);
    const std::string complaint = in_child([&]() -> std::string {
      auto store = SnapshotStore::open(folder.path(), "orders", {});
      auto writer = (*store)->write(sample_directory(1), 1);
      auto reader = (*store)->read(folder.file("orders-1-42.fps"));
      BlockView block;
      if (!(*reader)->next_block(block)) return "first block";
      reader = (*store)->read(folder.file("orders-1-42.fps"));
      if (Status s = append_samples(**writer, 0, kManyRecords / 2); !s.ok()) return s.message();
      if ((*writer)->io_stats().backend != "io_uring") return "not on the ring at first";
      refuse_system_call(SYS_io_uring_enter, error);
      if (Status s = append_samples(**writer, kManyRecords / 2, kManyRecords); !s.ok())
        return s.message();
      if (Status s = (*writer)->finish(sample_end(42)); !s.ok()) return s.message();
      if ((*writer)->io_stats().backend != "plain") return "still on the ring";
      if ((*writer)->io_stats().ring_fault.error != error) return "another errno";
      return file_bytes((*writer)->path()) == good ? compare_with_samples(**reader, kManyRecords)
                                                   : "other bytes";
    });
    CHECK(complaint == "");
  }
}

TEST_CASE("a storm of signals disturbs neither writing nor reading") {
  struct sigaction on_alarm {};
  struct sigaction before {};
  on_alarm.sa_handler = [](int) {};
  REQUIRE(::sigaction(SIGALRM, &on_alarm, &before) == 0);
  itimerval storm{{0, 100}, {0, 100}};
  const TempFolder folder;
  for (const IoOptions io : {IoOptions{}, kPlain}) {
    REQUIRE(::setitimer(ITIMER_REAL, &storm, nullptr) == 0);
    auto store = store_in(folder, io);
    const auto path = write_sample(*store, kManyRecords, 42);
    REQUIRE(path.ok());
    auto reader = store->read(*path);
    REQUIRE(reader.ok());
    CHECK(compare_with_samples(**reader, kManyRecords) == "");
    CHECK((*reader)->io_stats().ring_fault.error == 0);
    const itimerval calm{};
    REQUIRE(::setitimer(ITIMER_REAL, &calm, nullptr) == 0);
  }
  REQUIRE(::sigaction(SIGALRM, &before, nullptr) == 0);
}

TEST_CASE("a writer that is aborted, dropped or refused leaves no file") {
  const TempFolder folder;
  auto store = store_in(folder);
  {
    auto writer = store->write(sample_directory(1), 1);
    REQUIRE(writer.ok());
    REQUIRE(append_samples(**writer, 0, kManyRecords).ok());
    CHECK_FALSE(std::filesystem::is_empty(folder.path()));
    (*writer)->abort();
    CHECK(std::filesystem::is_empty(folder.path()));
    CHECK((*writer)->append_tombstone("x", 1).code() == Code::unavailable);
  }
  {
    auto writer = store->write(sample_directory(1), 1);
    REQUIRE(writer.ok());
    REQUIRE(append_samples(**writer, 0, 10).ok());
    REQUIRE((*writer)->seal(sample_end(1)).ok());
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  {
    auto writer = store->write(sample_directory(1), 1);
    REQUIRE(writer.ok());
    CHECK((*writer)->append_tombstone("", 1).code() == Code::refused);
    CHECK((*writer)->finish(sample_end(1)).code() == Code::refused);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  {
    auto writer = store->write(sample_directory(1), 1);
    REQUIRE(writer.ok());
    REQUIRE((*writer)->append_entry("a", 1, 3, kNoSnapshotShard, 1).ok());
    const Status status = (*writer)->finish(sample_end(1));
    CHECK(status.code() == Code::internal);
    CHECK(status.message().find("names shard 3 of 3") != std::string::npos);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a snapshot can be written without ever waiting") {
  const TempFolder folder;
  auto store = store_in(folder);
  auto writer = store->write(sample_directory(1), 1);
  REQUIRE(writer.ok());
  for (std::uint64_t n = 0; n < kManyRecords;) {
    if ((*writer)->would_wait()) continue;
    REQUIRE(append_samples(**writer, n, n + 100).ok());
    n += 100;
  }
  REQUIRE((*writer)->seal(sample_end(42)).ok());
  for (;;) {
    const auto done = (*writer)->poll(false);
    REQUIRE(done.ok());
    if (*done) break;
  }
  CHECK((*writer)->path() == folder.file("orders-1-42.fps"));
  CHECK(verify_snapshot((*writer)->path(), {}).ok());
}

}  // namespace
}  // namespace fingerpost
