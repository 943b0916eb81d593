// What a host pays besides resolves: loading a snapshot, applying changes, growth, starting a
// syncer.
//
//   cost_bench --scale=tiny|quick|full       one JSON object on standard output
//
// Figures are wall-clock time unless they say otherwise, medians of several runs; whatever is
// compared takes turns. Sizes are named in the keys.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/bench_segment.h"
#include "bench/machine.h"
#include "bench/program.h"
#include "bench/summary.h"
#include "reader/reader.h"
#include "shm/unique_fd.h"
#include "syncer/row_sink.h"
#include "syncer/snapshot_store.h"
#include "syncer/snapshot_task.h"
#include "syncer/source.h"
#include "syncer/sqlite_db.h"
#include "syncer/table_fill.h"
#include "syncer/wall_clock.h"

namespace fingerpost::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Scale {
  std::uint64_t large = 10'000'000;  // of the snapshot that is loaded
  std::uint64_t middle = 1'000'000;  // of the daemon's and the tables that change
  int loads = 9;
  int rounds = 9;
  int plain_loads = 1;
  std::uint64_t imported = 100'000;  // of the file that is imported, and read back
  bool large_daemon = false;         // starts and adoptions at the large size as well
};

Scale scale_of(std::string_view name) {
  if (name == "tiny") return {20'000, 5'000, 2, 2, 1, 1'000, false};
  if (name == "quick") return {};
  if (name == "full") return {10'000'000, 1'000'000, 15, 15, 5, 1'000'000, true};
  throw std::runtime_error("no scale " + std::string(name));
}

template <class Action>
double seconds(Action&& action) {
  const std::int64_t begin = now_ns();
  action();
  return static_cast<double>(now_ns() - begin) * 1e-9;
}

// A program with its standard streams on /dev/null.
pid_t spawn(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  pid_t child = -1;
  const int error = ::posix_spawnp(&child, argv[0], &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot run " + words[0]);
  return child;
}

void run_program(std::vector<std::string> words) {
  const std::string name = words[0];
  int status = 0;
  ::waitpid(spawn(std::move(words)), &status, 0);
  if (status != 0) throw std::runtime_error(name + " failed");
}

// A directory with shards and without tenants, and snapshots that claim its version: what a syncer
// finds that has nothing to catch up on.
class Origin {
 public:
  Origin() {
    run_program({FINGERPOST, "init", "--directory", directory()});
    SqliteDb db(folder_.file("directory.db"), SqliteDb::Mode::read_write);
    for (const ShardSpec& shard : shards()) {
      db.prepare("INSERT INTO shard_topology (shard_id, primary_address) VALUES (?, ?)")
          .bind(shard.name, shard.primary)
          .run();
    }
  }

  std::string directory() const { return "sqlite:" + folder_.file("directory.db"); }
  std::string state_dir(std::uint64_t entries) const {
    return folder_.file("state-" + std::to_string(entries));
  }

  // By the syncer's own scan of a table that is loaded under that directory's name. Its path.
  std::string write_snapshot(std::uint64_t entries) {
    const auto source = checked(open_source(directory()));
    checked(source->read_layout());
    const auto read = checked(source->read_all());
    const ScratchFolder folder(kTmpfs);
    const auto segment =
        make_segment(folder.file("fingerpost.origin"), entries, read->layout().directory_id);
    fill_segment(*segment, {KeyShape::uuid, entries}, 0);
    const auto store = checked(SnapshotStore::open(state_dir(entries), "bench", IoOptions{}));
    const auto task = checked(SnapshotTask::begin(*store, *segment));
    SnapshotEnd end;
    end.cursor = read->end();
    end.last_sync_unix_ns = unix_time_ns();
    end.meta.layout = read->layout();
    const std::int64_t begin = now_ns();
    while (!checked(task->step(std::chrono::milliseconds(10), end))) {
    }
    write_s_ = static_cast<double>(now_ns() - begin) * 1e-9;
    return task->path();
  }
  // Of the last snapshot: seconds from the first slot to the file under its name.
  double write_s() const { return write_s_; }

 private:
  ScratchFolder folder_{kDisk};
  double write_s_ = 0;
};

// One load into a new segment on tmpfs, as the syncer does it: seconds, its memory reserved and
// all.
double load_once(const std::string& snapshot, std::uint64_t entries, IoChoice choice) {
  const ScratchFolder folder(kTmpfs);
  const std::string path = folder.file("fingerpost.load");
  std::unique_ptr<OwnedSegment> segment;
  const double took = seconds([&] {
    IoOptions io;
    io.choice = choice;
    auto reader = checked(SnapshotReader::open(snapshot, io));
    segment = make_segment(path, std::max<std::uint64_t>(1'024, entries));
    auto& writer = segment->writer();
    check(writer.begin_load(needs_of(reader->info(), 0), reader->info().header.seed, 1, false));
    Quarantine quarantine;
    RowSink sink(*segment, quarantine, [] {});
    const auto fill = checked(fill_from_snapshot(std::move(reader), sink));
    while (!checked(fill->step(std::chrono::milliseconds(1)))) {
    }
    writer.switch_generation();
    writer.publish({1, 1, 1, 0});
    check(segment->publish_first());
  });
  const auto& table = segment->writer().table();
  for (std::uint64_t number = 0; number < entries; number += entries / 1'000 + 1) {
    if (table.find(make_key(KeyShape::uuid, number)).epoch != answer_of(number))
      throw std::runtime_error("a wrong entry after a load");
  }
  if (table.live() != entries) throw std::runtime_error("a load lost entries");
  return took;
}

// Nothing of it is in the page cache any more, so that the next load reads the disk.
void forget_pages(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fdatasync(file.get()) != 0 ||
      ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)
    throw std::runtime_error("cannot drop " + path + " from the page cache");
}

double copy_once(const std::string& snapshot) {
  const ScratchFolder folder(kTmpfs);
  return seconds([&] { run_program({"cp", snapshot, folder.file("copy")}); });
}

Json measure_load(Origin& origin, const Scale& scale) {
  const std::string snapshot = origin.write_snapshot(scale.large);
  std::vector<double> loads;
  std::vector<double> plain;
  std::vector<double> copies;
  copy_once(snapshot);  // warms the file for both
  for (int i = 0; i < scale.loads; ++i) {
    copies.push_back(copy_once(snapshot));
    loads.push_back(load_once(snapshot, scale.large, IoChoice::automatic));
    if (i < scale.plain_loads) plain.push_back(load_once(snapshot, scale.large, IoChoice::plain));
  }
  forget_pages(snapshot);
  const double cold = load_once(snapshot, scale.large, IoChoice::automatic);
  return {{"entries", scale.large},
          {"load_s", median(loads)},
          {"load_plain_io_s", median(plain)},
          {"load_cold_s", cold},
          {"cp_s", median(copies)},
          {"load_over_cp", median_ratio(loads, copies)},
          {"load_rows_per_s", static_cast<double>(scale.large) / median(loads)},
          {"write_rows_per_s", static_cast<double>(scale.large) / origin.write_s()}};
}

// Changed rows through the syncer's own way into the table, in batches of a hundredth of it.
Json measure_apply(const Scale& scale) {
  const Contents contents{KeyShape::uuid, scale.middle};
  BenchSegment segment(contents);
  Quarantine quarantine;
  RowSink sink(segment.segment(), quarantine, [] {});
  const std::uint64_t rows = std::max<std::uint64_t>(100, scale.middle / 10);
  std::vector<double> rates;
  for (int round = 0; round < scale.rounds; ++round) {
    Batch batch;
    batch.end.version = scale.middle + 2 + static_cast<std::uint64_t>(round);
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t number = mix(batch.end.version * rows + i) % scale.middle;
      EntryRow row;
      row.id = batch.keep(make_key(contents.shape, number));
      row.shard = batch.keep("shard-" + std::to_string(shard_of(number)));
      row.state = "ACTIVE";
      row.epoch = batch.end.version;
      batch.rows.push_back(row);
    }
    const std::int64_t begin = thread_ns();
    check(sink.apply(batch));
    segment.writer().publish({1, batch.end.version, 1, 0});
    rates.push_back(static_cast<double>(rows) * 1e9 / static_cast<double>(thread_ns() - begin));
    if (segment.writer().table().find(batch.rows.back().id).epoch != batch.end.version)
      throw std::runtime_error("a change was not applied");
  }
  const double grown = seconds([&] {
    auto& writer = segment.writer();
    check(writer.begin_copy({scale.middle / 4, 0, FallbackKind::none, 0},
                            writer.table().generation().seed));
    while (!checked(writer.step_copy(std::chrono::milliseconds(1)))) {
    }
    writer.switch_generation();
  });
  return {{"rows_per_batch", rows}, {"rows_per_s", median(rates)}, {"grow_s", grown}};
}

// A CSV file into a directory by the command, and all of it from there into a table.
Json measure_import(const Scale& scale) {
  Origin origin;
  const ScratchFolder files(kDisk);
  {
    std::ofstream csv(files.file("tenants.csv"));
    csv << "entry_id,shard_id\n";
    for (std::uint64_t number = 0; number < scale.imported; ++number)
      csv << make_key(KeyShape::uuid, number) << ",shard-" << shard_of(number) << '\n';
  }
  const double imported = seconds([&] {
    run_program(
        {FINGERPOST, "import", files.file("tenants.csv"), "--directory", origin.directory()});
  });
  const auto source = checked(open_source(origin.directory()));
  checked(source->read_layout());
  const ScratchFolder folder(kTmpfs);
  const auto segment = make_segment(folder.file("fingerpost.reload"), scale.imported);
  std::uint64_t live = 0;
  const double reloaded = seconds([&] {
    const auto read = checked(source->read_all());
    auto& writer = segment->writer();
    check(writer.begin_load(needs_of(*read, 0), draw_seed(), 1, false));
    check(writer.add_shards(read->topology()));
    Quarantine quarantine;
    RowSink sink(*segment, quarantine, [] {});
    const auto fill = fill_from_read(*read, sink);
    while (!checked(fill->step(std::chrono::milliseconds(1)))) {
    }
    writer.switch_generation();
    live = writer.table().live();
  });
  if (live != scale.imported) throw std::runtime_error("a reload lost rows");
  const auto rows = static_cast<double>(scale.imported);
  return {{"rows", scale.imported},
          {"import_rows_per_s", rows / imported},
          {"reload_rows_per_s", rows / reloaded}};
}

Json measure_memory(const Scale& scale) {
  BenchSegment segment({KeyShape::uuid, scale.middle});
  const auto status = checked(Reader::open(segment.path())).status();
  return {{"entries", scale.middle},
          {"table_bytes", status.table_bytes},
          {"bytes_per_tenant",
           static_cast<double>(status.table_bytes) / static_cast<double>(scale.middle)}};
}

// The daemon that ships, over a segment of its own.
class Daemon {
 public:
  Daemon(const Origin& origin, std::uint64_t entries)
      : words_{FINGERPOSTD,
               "--name",
               path(),
               "--directory",
               origin.directory(),
               "--state-dir",
               origin.state_dir(entries)} {}
  ~Daemon() { end(); }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // From exec until a reader finds it ready and caught up by this process: seconds.
  double start() {
    const std::int64_t begin = now_ns();
    child_ = spawn(words_);
    for (;;) {
      if (auto reader = Reader::open(path()); reader.ok() && reader->ready()) {
        const auto age = reader->age();
        if (age && age->count() < now_ns() - begin && reader->status().serving == "caught up")
          return static_cast<double>(now_ns() - begin) * 1e-9;
      }
      if (now_ns() - begin > 120'000'000'000) throw std::runtime_error("fingerpostd is not ready");
      ::usleep(500);
    }
  }
  void end() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = -1;
  }
  // The segment goes, as after a boot of the machine.
  void forget() {
    end();
    ::unlink(path().c_str());
  }

  std::string path() const { return folder_.file("fingerpost.bench"); }
  // Processor time it has taken, in seconds.
  double cpu_s() const {
    std::ifstream stat("/proc/" + std::to_string(child_) + "/stat");
    std::string word;
    double ticks = 0;
    for (int field = 1; stat >> word; ++field) {
      if (field == 14 || field == 15) ticks += std::stod(word);
    }
    return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  ScratchFolder folder_{kTmpfs};
  std::vector<std::string> words_;
  pid_t child_ = -1;
};

struct Starts {
  std::vector<double> ready;  // seconds, from a snapshot
  std::vector<double> adopt;  // the segment that a killed one left
};

Starts measure_starts(Daemon& daemon, int rounds) {
  Starts starts;
  for (int round = 0; round < rounds; ++round) {
    daemon.forget();
    starts.ready.push_back(daemon.start());
    daemon.end();
    starts.adopt.push_back(daemon.start());
  }
  return starts;
}

Json measure_daemon(Origin& origin, const Scale& scale) {
  origin.write_snapshot(scale.middle);
  Daemon daemon(origin, scale.middle);
  const auto [ready, adopt] = measure_starts(daemon, scale.rounds);
  const auto reader = checked(Reader::open(daemon.path()));
  if (reader.status().counters[static_cast<std::size_t>(Counter::entries)] != scale.middle)
    throw std::runtime_error("fingerpostd serves another table");

  SqliteDb db(origin.directory().substr(std::string_view("sqlite:").size()),
              SqliteDb::Mode::read_write);
  std::vector<double> visible;
  for (int round = 0; round < scale.rounds; ++round) {
    const std::string id = make_key(KeyShape::slug, static_cast<std::uint64_t>(round));
    db.prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, 'shard-1')")
        .bind(id)
        .run();
    visible.push_back(seconds([&] {
      while (!reader.resolve(id).found()) ::usleep(50);
    }));
    ::usleep(20'000);
  }
  const double cpu_before = daemon.cpu_s();
  constexpr double kIdleS = 3;
  ::usleep(static_cast<useconds_t>(kIdleS * 1e6));
  return {{"entries", scale.middle},
          {"ready_s", median(ready)},
          {"adopt_s", median(adopt)},
          {"commit_to_visible_s", median(visible)},
          {"idle_cpu_share", (daemon.cpu_s() - cpu_before) / kIdleS}};
}

int run(int argc, char** argv) {
  const auto scale_name = scale_argument("cost_bench", argc, argv);
  if (!scale_name) return 2;
  const Scale scale = scale_of(*scale_name);
  Origin origin;
  Json out;
  out["memory"] = measure_memory(scale);
  out["apply"] = measure_apply(scale);
  out["import"] = measure_import(scale);
  out["daemon"] = measure_daemon(origin, scale);
  out["load"] = measure_load(origin, scale);
  if (scale.large_daemon) {
    Daemon daemon(origin, scale.large);
    const auto [ready, adopt] = measure_starts(daemon, 3);
    out["large_daemon"] = {
        {"entries", scale.large}, {"ready_s", median(ready)}, {"adopt_s", median(adopt)}};
  }
  std::cout << out.dump(1) << '\n';
  return 0;
}

}  // namespace
}  // namespace fingerpost::bench

int main(int argc, char** argv) {
  using namespace fingerpost::bench;
  return run_main("cost_bench", argc, argv, run);
}
