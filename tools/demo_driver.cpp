// The demo behind tools/demo: has changes committed, runs the syncer and the workers, kills the
// syncer half-way, and tells what was seen. Exit status: 0 every answer was right · 1 one was not ·
// 5 it could not run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <thread>

#include "reader/reader.h"
#include "shm/counters.h"
#include "tools/demo_changes.h"
#include "tools/demo_ledger.h"
#include "tools/directory.h"

namespace fingerpost::demo {
namespace {

using namespace std::chrono_literals;

constexpr auto kCommitEvery = 20ms;
constexpr auto kDeadFor = 1500ms;
constexpr auto kReadyWithin = 60s;
constexpr auto kVisibleAtLast = 2s;  // waited for before a commit counts as lost

struct Options {
  std::string directory;
  std::string segment;
  std::string state_dir;
  std::string daemon;
  int seconds = 20;
  bool keep = false;
};

struct Fault : std::runtime_error {
  using runtime_error::runtime_error;
};

class Demo {
 public:
  explicit Demo(const Options& options) : options_(options) {
    auto opened = Directory::open(options.directory);
    if (!opened.ok()) throw Fault(opened.status().message());
    directory_ = std::move(*opened);
    load_ids();
  }
  ~Demo() {
    ledger_->board().stop.store(true);
    for (const pid_t worker : workers_) waitpid(worker, nullptr, 0);
    if (syncer_ > 0 && !options_.keep) stop_syncer(SIGTERM);
  }
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  int run();

 private:
  Board& board() { return ledger_->board(); }
  void load_ids();
  void start_syncer();
  void stop_syncer(int signal);
  void start_workers();
  void commit_for(std::chrono::milliseconds time);
  void commit_one();
  void wait_visible(std::uint64_t version, std::int64_t committed);
  void live_line();
  int summary();

  Options options_;
  std::unique_ptr<Directory> directory_;
  std::vector<std::string> ids_;
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Changes> changes_;
  std::optional<Reader> reader_;
  std::vector<pid_t> workers_;
  pid_t syncer_ = -1;
  std::uint64_t lost_ = 0;
  std::vector<double> visible_ms_;
  std::uint64_t resolves_then_ = 0;
  std::int64_t line_then_ns_ = 0;
  std::int64_t phase_started_ns_ = 0;
  double phase_seconds_[2] = {0, 0};
};

void Demo::load_ids() {
  auto row = directory_->db().prepare(
      "SELECT entry_id FROM shard_directory WHERE entry_id NOT LIKE 'bucket:%'");
  while (row.step()) ids_.emplace_back(row.text(0));
  ledger_ = std::make_unique<Ledger>(ids_.size());
  changes_ = std::make_unique<Changes>(*directory_, ids_, *ledger_);
}

void Demo::start_syncer() {
  const auto adoptions = [this] {
    return reader_->status().counters[static_cast<std::size_t>(Counter::adoptions)];
  };
  const std::uint64_t adopted_before = reader_ ? adoptions() : 0;
  const bool adopts = reader_.has_value();
  syncer_ = fork();
  if (syncer_ < 0) throw Fault("cannot fork");
  if (syncer_ == 0) {
    const std::string log = options_.state_dir + ".log";
    if (std::freopen(log.c_str(), "a", stderr) == nullptr) _exit(127);
    execl(options_.daemon.c_str(), "fingerpostd", "--name", options_.segment.c_str(), "--directory",
          options_.directory.c_str(), "--state-dir", options_.state_dir.c_str(),
          "--snapshot-interval", "5s", nullptr);
    _exit(127);
  }
  const auto until = std::chrono::steady_clock::now() + kReadyWithin;
  for (;;) {
    if (!reader_) {
      if (auto opened = Reader::open(options_.segment); opened.ok())
        reader_.emplace(std::move(*opened));
    }
    // What the segment says of a dead syncer is not this one's.
    const bool ours = reader_ && (!adopts || adoptions() > adopted_before);
    if (ours && reader_->status().serving == "caught up") break;
    if (waitpid(syncer_, nullptr, WNOHANG) == syncer_) {
      syncer_ = -1;
      throw Fault("the syncer ended; see " + options_.state_dir + ".log");
    }
    if (std::chrono::steady_clock::now() > until) throw Fault("the syncer was not ready in time");
    std::this_thread::sleep_for(2ms);
  }
  board().syncer_up_ns.store(monotonic_ns());
}

void Demo::stop_syncer(int signal) {
  board().syncer_up_ns.store(0);
  kill(syncer_, signal);
  waitpid(syncer_, nullptr, 0);
  syncer_ = -1;
}

void Demo::start_workers() {
  for (std::size_t i = 0; i < kWorkers; ++i) {
    const pid_t child = fork();
    if (child < 0) throw Fault("cannot fork");
    if (child == 0) _exit(run_worker(options_.segment, ids_, *ledger_, i));
    workers_.push_back(child);
  }
  const auto until = std::chrono::steady_clock::now() + kReadyWithin;
  for (WorkerFigures& worker : board().workers) {
    while (worker.rss_anon_kib.load() < 0) {
      if (std::chrono::steady_clock::now() > until) throw Fault("a worker did not start");
      std::this_thread::sleep_for(5ms);
    }
  }
}

void Demo::commit_one() {
  const std::optional<std::uint64_t> version = changes_->commit_one();
  if (version && board().syncer_up_ns.load() != 0) wait_visible(*version, monotonic_ns());
}

void Demo::wait_visible(std::uint64_t version, std::int64_t committed) {
  if (reader_->wait_version(version, kVisibleAtLast).ok()) {
    visible_ms_.push_back(static_cast<double>(monotonic_ns() - committed) / 1e6);
  } else {
    ++lost_;
  }
}

void Demo::commit_for(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
    commit_one();
    live_line();
    std::this_thread::sleep_for(kCommitEvery);
  }
}

void Demo::live_line() {
  const std::int64_t now = monotonic_ns();
  if (isatty(STDOUT_FILENO) == 0 || now - line_then_ns_ < 500'000'000) return;
  std::uint64_t resolves = 0;
  std::uint64_t wrong = 0;
  std::uint64_t undetermined = 0;
  for (const WorkerFigures& worker : board().workers) {
    for (const PhaseFigures& phase : worker.phases) resolves += phase.resolves.load();
    wrong += worker.wrong.load();
    undetermined += worker.undetermined.load();
  }
  const double seconds = static_cast<double>(now - line_then_ns_) / 1e9;
  fmt::print(
      "\r  syncer {} · version {} · {:.1f} M resolves/s checked · wrong {} · undetermined {}   ",
      board().syncer_up_ns.load() != 0 ? "up  " : "DEAD", reader_->version(),
      static_cast<double>(resolves - resolves_then_) / seconds / 1e6, wrong, undetermined);
  std::fflush(stdout);
  resolves_then_ = resolves;
  line_then_ns_ = now;
}

int Demo::run() {
  fmt::print("serving {} tenants and {} buckets on {} shards; {} workers\n", ids_.size(), kBuckets,
             kShards, kWorkers);
  std::fflush(stdout);
  start_syncer();
  start_workers();
  const auto half = std::chrono::milliseconds(options_.seconds * 500);
  phase_started_ns_ = monotonic_ns();
  commit_for(half);
  phase_seconds_[0] = static_cast<double>(monotonic_ns() - phase_started_ns_) / 1e9;

  board().phase.store(Phase::after_kill);
  phase_started_ns_ = monotonic_ns();
  stop_syncer(SIGKILL);
  commit_for(kDeadFor);
  const std::int64_t restart = monotonic_ns();
  start_syncer();
  const double restart_ms = static_cast<double>(monotonic_ns() - restart) / 1e6;
  commit_for(half);
  changes_->finish();
  phase_seconds_[1] = static_cast<double>(monotonic_ns() - phase_started_ns_) / 1e9;

  board().stop.store(true);
  bool failed = false;
  for (const pid_t worker : workers_) {
    int status = 0;
    waitpid(worker, &status, 0);
    failed |= status != 0;
  }
  workers_.clear();
  fmt::print(
      "\r{:100}\rsyncer killed with SIGKILL, dead for {} ms, back and caught up {:.0f} ms after "
      "its restart\n",
      "", kDeadFor.count(), restart_ms);
  const int result = summary();
  if (options_.keep) {
    fmt::print("\nleft running: the syncer, pid {}. Try:\n", syncer_);
  }
  return failed ? 1 : result;
}

double percentile(std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

int Demo::summary() {
  std::uint64_t wrong = 0;
  std::uint64_t undetermined = 0;
  fmt::print("\n{:<10}{:>14}{:>14}{:>16}{:>16}{:>14}{:>14}{:>12}\n", "worker", "resolves/s",
             "resolves/s", "slowest ms", "slowest ms", "over 1 ms", "over 1 ms", "RssAnon");
  fmt::print("{:<10}{:>14}{:>14}{:>16}{:>16}{:>14}{:>14}{:>12}\n", "", "before kill", "after",
             "before kill", "after", "before kill", "after", "grown KiB");
  for (std::size_t i = 0; i < kWorkers; ++i) {
    const WorkerFigures& worker = board().workers[i];
    const auto& [before, after] = worker.phases;
    fmt::print("{:<10}{:>14.0f}{:>14.0f}{:>16.2f}{:>16.2f}{:>14}{:>14}{:>12}\n", i + 1,
               static_cast<double>(before.resolves.load()) / phase_seconds_[0],
               static_cast<double>(after.resolves.load()) / phase_seconds_[1],
               static_cast<double>(before.slowest_ns.load()) / 1e6,
               static_cast<double>(after.slowest_ns.load()) / 1e6, before.over_a_millisecond.load(),
               after.over_a_millisecond.load(), worker.rss_anon_kib.load());
    wrong += worker.wrong.load();
    undetermined += worker.undetermined.load();
  }
  std::sort(visible_ms_.begin(), visible_ms_.end());
  fmt::print("\nwrong answers        {}\nundetermined         {}\n", wrong, undetermined);
  fmt::print(
      "commits              {} ({} never seen within {} s): {} tenants and buckets moved, in "
      "steps\n",
      changes_->commits(), lost_, kVisibleAtLast.count(), changes_->moved());
  fmt::print("commit to visible    p50 {:.2f} ms, p99 {:.2f} ms\n", percentile(visible_ms_, 0.5),
             percentile(visible_ms_, 0.99));
  fmt::print(
      "Each resolve is checked and timed, which takes longer than the resolve. More processes than "
      "cores: the slowest\n"
      "ones are those that were interrupted, before the kill as after it.\n");
  return wrong == 0 && undetermined == 0 && lost_ == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fingerpost::demo

int main(int argc, char** argv) {
  using namespace fingerpost::demo;
  Options options;
  CLI::App app{"The demo behind tools/demo: start that."};
  app.add_option("--directory", options.directory)->required();
  app.add_option("--segment", options.segment)->required();
  app.add_option("--state-dir", options.state_dir)->required();
  app.add_option("--daemon", options.daemon)->required();
  app.add_option("--seconds", options.seconds)->check(CLI::Range(2, 3'600));
  app.add_flag("--keep", options.keep);
  CLI11_PARSE(app, argc, argv);
  try {
    return Demo(options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "demo: %s\n", error.what());
    return 5;
  }
}
