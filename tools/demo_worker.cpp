#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>

#include "reader/reader.h"
#include "shm/hash.h"
#include "shm/text_file.h"
#include "tools/demo_ledger.h"

namespace fingerpost::demo {
namespace {

constexpr std::int64_t kMillisecondNs = 1'000'000;
constexpr std::uint64_t kPollEvery = 1'000'000;  // resolves; a second or so
constexpr std::size_t kStrangers = 4'096;        // ids without an entry of their own

std::int64_t rss_anon_kib() {
  const auto kib = number_after(read_text_file("/proc/self/status").value_or(""), "RssAnon");
  return static_cast<std::int64_t>(kib.value_or(0));
}

// "s3" → 2; the demo's shards are s1 to s8.
std::uint64_t shard_number(std::string_view name) {
  return name.size() == 2 && name[0] == 's' && name[1] >= '1' && name[1] <= '8'
             ? static_cast<std::uint64_t>(name[1] - '1')
             : kShards;
}

// "10.0.3.7:5432" → 7: every address of a shard has a number of its own.
std::uint64_t address_number(std::string_view address) {
  const std::size_t dot = address.rfind('.');
  const std::size_t colon = address.rfind(':');
  if (dot == std::string_view::npos || colon == std::string_view::npos || colon < dot) return 0;
  return std::stoull(std::string(address.substr(dot + 1, colon - dot - 1)));
}

class Worker {
 public:
  Worker(Reader& reader, const std::vector<std::string>& ids, Ledger& ledger, std::size_t number)
      : reader_(reader),
        ids_(ids),
        ledger_(ledger),
        board_(ledger.board()),
        figures_(board_.workers[number]),
        random_(number + 1),
        seen_(ids.size() + kBuckets),
        seen_shards_(kShards) {
    for (std::size_t i = 0; i < kStrangers; ++i)
      strangers_.push_back("visitor-" + std::to_string(i));
  }

  void run() {
    for (std::uint64_t count = 1; !board_.stop.load(); ++count) {
      const std::uint64_t draw = random_();
      // One lookup in eight asks for an id that only a bucket knows.
      if (draw % 8 != 0) {
        const std::size_t i = (draw >> 8) % ids_.size();
        look(ids_[i], ledger_.tenant(i), seen_[i], RouteSource::override_entry);
      } else {
        const std::string& id = strangers_[(draw >> 8) % kStrangers];
        const std::size_t bucket = placement_hash(id) % kBuckets;
        look(id, board_.buckets[bucket], seen_[ids_.size() + bucket], RouteSource::bucket);
      }
      if (count % kPollEvery == 0) reader_.poll();
    }
  }

 private:
  void look(const std::string& id, const Entry& entry, std::uint64_t& seen, RouteSource source) {
    const std::int64_t up = board_.syncer_up_ns.load();
    PhaseFigures& figures = figures_.phases[static_cast<unsigned>(board_.phase.load())];
    const std::int64_t start = monotonic_ns();
    const Route route = reader_.resolve(id);
    const std::int64_t took = monotonic_ns() - start;
    figures.resolves.fetch_add(1);
    if (took > kMillisecondNs) figures.over_a_millisecond.fetch_add(1);
    if (took > figures.slowest_ns.load()) figures.slowest_ns.store(took);

    if (route.answer() == Answer::undetermined) {
      figures_.undetermined.fetch_add(1);
      return;
    }
    // What had been committed for a second when the lookup began, with a syncer alive for as long,
    // must be seen.
    const bool bound = up != 0 && up + kVisibleWithinNs < start;
    const std::int64_t then = start - kVisibleWithinNs;
    const ShardView shard = route.shard();
    const std::uint64_t number = shard_number(shard.name());
    bool right = route.found() && route.source() == source && number < kShards &&
                 entry.has(route.epoch(), ledger_value(number, route.state())) &&
                 route.writable() == (route.state() != State::frozen) && route.epoch() >= seen &&
                 (!bound || route.epoch() >= entry.epoch_at(then));
    if (right) {
      const Entry& addresses = board_.shards[number];
      const std::uint64_t epoch = addresses.epoch_of(address_number(shard.primary()));
      right = epoch != 0 && epoch >= seen_shards_[number] &&
              (!bound || epoch >= addresses.epoch_at(then));
      seen_shards_[number] = std::max(seen_shards_[number], epoch);
    }
    if (!right) complain(id, route, entry);
    seen = std::max(seen, route.epoch());
  }

  void complain(const std::string& id, const Route& route, const Entry& entry) {
    if (figures_.wrong.fetch_add(1) >= 5) return;
    std::fprintf(
        stderr, "wrong: %s answered %u by %s at %s %s epoch %llu; the ledger's last is s%llu %s\n",
        id.c_str(), static_cast<unsigned>(route.answer()),
        std::string(to_string(route.source())).c_str(), std::string(route.shard().name()).c_str(),
        std::string(to_string(route.state())).c_str(),
        static_cast<unsigned long long>(route.epoch()),
        static_cast<unsigned long long>(shard_of(entry.value()) + 1),
        std::string(to_string(state_of(entry.value()))).c_str());
  }

  Reader& reader_;
  const std::vector<std::string>& ids_;
  Ledger& ledger_;
  Board& board_;
  WorkerFigures& figures_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> seen_;
  std::vector<std::uint64_t> seen_shards_;
  std::vector<std::string> strangers_;
};

}  // namespace

int run_worker(const std::string& segment, const std::vector<std::string>& ids, Ledger& ledger,
               std::size_t number) {
  // Once through everything that is ours, so that what grows afterwards is the segment's doing.
  for (std::size_t i = 0; i < ids.size(); ++i) (void)ledger.tenant(i).value();
  const std::int64_t before = rss_anon_kib();
  auto reader = Reader::open(segment);
  if (!reader.ok()) {
    std::fprintf(stderr, "worker %zu: %s\n", number, reader.status().message().c_str());
    return 1;
  }
  std::uint64_t found = 0;
  for (const std::string& id : ids) found += reader->resolve(id).found();
  const std::int64_t after = rss_anon_kib();
  ledger.board().workers[number].rss_anon_kib.store(after - before);
  if (found != ids.size()) ledger.board().workers[number].wrong.fetch_add(ids.size() - found);
  Worker(*reader, ids, ledger, number).run();
  return 0;
}

}  // namespace fingerpost::demo
