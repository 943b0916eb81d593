// One host for a test: a directory in SQLite, a state folder, a tmpfs folder for the segment, and a
// syncer that the test turns by hand.
#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "reader/reader.h"
#include "shm/counters.h"
#include "syncer/syncer.h"
#include "tests/reader_counters.h"
#include "tests/sample_directory.h"
#include "tests/temp_folder.h"

namespace fingerpost {

class SyncerHost {
 public:
  SyncerHost() {
    make_sample_directory(directory_path());
    options.name = shm_.file("seg");
    options.directory = directory_path();
    options.state_dir = files_.file("state");
    options.capacity = 20'000;
    options.poll_interval = std::chrono::milliseconds(20);
    options.freshness.catch_up_wait = std::chrono::milliseconds(100);
  }

  std::string directory_path() const { return files_.file("directory.db"); }
  std::string file(const std::string& name) const { return files_.file(name); }
  const std::string& segment_path() const { return options.name; }

  // The writer of the directory: anybody with SQL.
  SqliteDb db() const { return SqliteDb(directory_path(), SqliteDb::Mode::read_write); }
  void sql(const std::string& text) const { db().exec(text); }

  Status start() {
    auto started = Syncer::start(options, log_);
    if (!started.ok()) return started.status();
    syncer_ = std::move(*started);
    return {};
  }
  // As SIGKILL leaves it: no last word, and the kernel takes the locks back.
  void kill() { syncer_.reset(); }
  void stop() {
    syncer_->stop(std::chrono::seconds(5));
    syncer_.reset();
  }
  bool is_running() const { return syncer_ != nullptr; }
  Syncer& syncer() { return *syncer_; }

  // One turn; false if it would rather stop.
  bool turn() {
    const auto sleep = syncer_->turn();
    if (!sleep.ok()) return false;
    std::this_thread::sleep_for(
        std::min<std::chrono::nanoseconds>(*sleep, std::chrono::milliseconds(1)));
    return true;
  }
  // Turns until `done`; false if that takes longer than ten seconds.
  bool turn_until(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (std::chrono::steady_clock::now() > until || !turn()) return false;
    }
    return true;
  }
  void turn_for(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until && turn()) {
    }
  }

  // Starts, and turns until a worker can map the segment and finds it caught up.
  void serve() {
    const Status started = start();
    REQUIRE_MESSAGE(started.ok(), started.message());
    REQUIRE(turn_until([this] { return caught_up(); }));
  }
  bool caught_up() const {
    const auto reader = Reader::open(segment_path());
    return reader.ok() && reader->status().serving == "caught up";
  }
  Reader reader() const {
    auto opened = Reader::open(segment_path());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    return std::move(*opened);
  }
  // Turns until the worker finds `id` on `shard`.
  bool sees(const Reader& worker, const std::string& id, const std::string& shard) {
    return turn_until([&] {
      worker.poll();
      return worker.resolve(id).shard().name() == shard;
    });
  }

  SyncerOptions options;

 private:
  TempFolder files_;
  TempFolder shm_{"/dev/shm"};
  Log log_;
  std::unique_ptr<Syncer> syncer_;
};

}  // namespace fingerpost
