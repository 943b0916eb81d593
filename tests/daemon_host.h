// The real programs for a test: a directory in SQLite, fingerpostd in a process of its own, and the
// folders of both, gone when the test ends. What a daemon says goes to a file that the test reads.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "reader/reader.h"
#include "shm/counters.h"
#include "shm/hash.h"
#include "tests/process.h"
#include "tests/reader_counters.h"
#include "tests/run_program.h"
#include "tests/sample_directory.h"
#include "tests/temp_folder.h"

namespace fingerpost {

class DaemonHost {
 public:
  explicit DaemonHost(const std::string& segment_folder = "/dev/shm") : shm_(segment_folder) {
    make_sample_directory(directory_path());
  }

  std::string directory_path() const { return files_.file("directory.db"); }
  std::string state_dir() const { return files_.file("state"); }
  std::string segment_path() const { return shm_.file("seg"); }
  std::string segment_folder() const { return shm_.path(); }
  std::string file(const std::string& name) const { return files_.file(name); }

  // Whoever changes the directory: anybody with SQL.
  SqliteDb db() const { return SqliteDb(directory_path(), SqliteDb::Mode::read_write); }
  void sql(const std::string& text) const { db().exec(text); }
  std::uint64_t version() const {
    return static_cast<std::uint64_t>(db().integer("SELECT version FROM directory_version"));
  }
  void add_tenants(int count, const std::string& shard = "alpha",
                   const std::string& prefix = "t") const {
    SqliteDb writer = db();
    put_tenants(writer, count, shard, prefix);
  }
  // From now on no change counts as an accident.
  void approve_everything() const {
    sql("INSERT INTO directory_approval (version, who, at) VALUES (4611686018427387904, 'test', "
        "'2026-01-01T00:00:00Z')");
  }

  // As `tenant forget` does it.
  void forget(const std::string& id) const {
    SqliteDb writer = db();
    SqliteTransaction transaction(writer, SqliteTransaction::Kind::write);
    writer.exec("INSERT INTO directory_session (id, who, verb) VALUES (1, 'test', 'forget')");
    writer.prepare("INSERT INTO directory_removed (entry_id, version, uncovers) VALUES (?, 0, ?)")
        .bind(id, "bucket:" + std::to_string(placement_hash(id) % 16))
        .run();
    writer.prepare("DELETE FROM shard_directory WHERE entry_id = ?").bind(id).run();
    writer.exec("DELETE FROM directory_session");
    transaction.commit();
  }

  // What a test does not say in `more` itself is the usual.
  std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {FINGERPOST_DAEMON};
    const std::vector<std::pair<std::string, std::string>> usual = {
        {"--name", segment_path()},
        {"--directory", directory_path()},
        {"--state-dir", state_dir()},
        {"--poll-interval", "200ms"},
        {"--catch-up-wait", "300ms"}};
    for (const auto& [flag, value] : usual) {
      if (std::find(more.begin(), more.end(), flag) != more.end()) continue;
      words.insert(words.end(), {flag, value});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // Starts a daemon without waiting for anything.
  Process& start(const std::vector<std::string>& more = {},
                 const std::function<void()>& prepare = {}) {
    daemon_.emplace(command(more), file("log"), prepare);
    return *daemon_;
  }
  // Starts a daemon and waits until it has caught up with the directory.
  void serve(const std::vector<std::string>& more = {}) {
    const std::size_t said = log().size();
    start(more);
    REQUIRE_MESSAGE(eventually([&] { return has_begun(said) && serving() == "caught up"; }), log());
  }
  Process& daemon() { return *daemon_; }
  // SIGKILL.
  void kill() { daemon_.reset(); }
  // SIGTERM; how long it took.
  std::chrono::milliseconds stop() {
    REQUIRE(eventually([this] { return daemon_->hears(SIGTERM); }));
    const auto begin = std::chrono::steady_clock::now();
    daemon_->signal(SIGTERM);
    const auto status = daemon_->exit_status();
    CHECK_MESSAGE(status == 0, log());
    daemon_.reset();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begin);
  }

  // A second daemon, or one that is to fail: how it ended and what it said.
  Ran run(const std::vector<std::string>& more = {}) const {
    auto words = command(more);
    const std::string program = words.front();
    words.erase(words.begin());
    return run_program(program, words);
  }

  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(file("log")).rdbuf();
    return text.str();
  }
  bool logged(const std::string& what) const { return log().find(what) != std::string::npos; }

  Reader reader() const {
    auto opened = Reader::open(segment_path());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message() << "\n" << log());
    return std::move(*opened);
  }
  // What a new worker would find.
  std::string serving() const {
    const auto opened = Reader::open(segment_path());
    return opened.ok() ? std::string(opened->status().serving) : "";
  }

 private:
  // What an earlier daemon left says "caught up" as well; not so once the next one has taken it.
  bool has_begun(std::size_t said) const {
    const std::string news = log().substr(said);
    return news.find(" adopted ") != std::string::npos ||
           news.find(" serving ") != std::string::npos;
  }

  TempFolder files_{"/dev/shm"};  // where a commit waits for no disk
  TempFolder shm_;
  std::optional<Process> daemon_;
};

// Waits until `worker`, which polls as a worker should, finds `id` on `shard`.
inline bool sees(const Reader& worker, const std::string& id, const std::string& shard,
                 std::chrono::milliseconds patience = std::chrono::seconds(10)) {
  return eventually(
      [&] {
        worker.poll();
        return worker.resolve(id).shard().name() == shard;
      },
      patience);
}

}  // namespace fingerpost
