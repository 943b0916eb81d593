// One writer and several readers over one mapping, for some seconds. Every route proves itself: it
// follows from its key and its epoch, so a torn, foreign or third route is evident. Threads of one
// process over one mapping are what ThreadSanitizer can judge.
#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "shm/resolve.h"
#include "shm/segment_writer.h"
#include "tests/segment_buffer.h"

using namespace fingerpost;
using namespace std::chrono_literals;

namespace {

using Writer = SegmentWriter<StdAtomics>;

constexpr auto kDuration = 5s;
constexpr auto kSwitchEvery = 3ms;
constexpr std::size_t kReaders = 4;
constexpr std::size_t kIds = 2'000;
constexpr std::size_t kTwins = 16;  // see Twins
constexpr std::uint64_t kBuckets = 256;
// Epochs outgrow a route word's bits early in the run.
constexpr std::uint64_t kFirstVersion = kEpochInlineMax - 600;

std::uint64_t mix(std::uint64_t x) {  // the finaliser of SplitMix64 (Steele, Lea, Flood 2014)
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

// The one route that `key` can have at `epoch`.
RouteFields proven(std::uint64_t key, std::uint64_t epoch, bool is_bucket) {
  const std::uint64_t m = mix(key ^ mix(epoch));
  RouteFields route{State::active, static_cast<std::uint16_t>(m % 60'000), kNoShard, epoch};
  switch (m >> 32 & 7) {
    case 0:
      route.state = State::frozen;
      break;
    case 1:
      route.state = State::migrating;
      route.target = static_cast<std::uint16_t>((m >> 16) % 60'000);
      break;
    case 2:
      if (!is_bucket) route.state = State::deleted;
      break;
    default:
      break;
  }
  return route;
}
std::uint64_t bucket_key(std::uint64_t bucket) {
  return ~bucket;
}

struct Tenant {
  std::string id;
  std::uint64_t key = 0;
  std::uint64_t bucket = 0;
};

// The last kTwins tenants are twins: the only tenants of buckets that nothing else changes. In an
// odd version a twin gets an override and its bucket changes; in an even one its bucket changes and
// the override goes. So it shows an override with an odd epoch or its bucket with an even one, and
// any third route has the wrong parity.
struct Population {
  std::vector<Tenant> tenants;
  std::size_t first_twin = 0;

  Population() {
    const auto make = [](std::size_t i) {
      Tenant tenant;
      // Many share their first fifty bytes, and differ only in their tail.
      tenant.id = (i % 4 == 0 ? std::string(50 + i % 100, 'x') : "tenant-") + std::to_string(i);
      tenant.key = placement_hash(tenant.id);
      tenant.bucket = tenant.key % kBuckets;
      return tenant;
    };
    std::size_t i = 0;
    while (tenants.size() < kIds - kTwins) {
      Tenant tenant = make(i++);
      if (tenant.bucket >= kTwins) tenants.push_back(std::move(tenant));
    }
    first_twin = tenants.size();
    while (tenants.size() < kIds) {
      Tenant tenant = make(i++);
      if (tenant.bucket == tenants.size() - first_twin) tenants.push_back(std::move(tenant));
    }
  }
};

// What a reader saw that must not be.
struct Faults {
  std::uint64_t undetermined = 0;
  std::uint64_t unknown = 0;    // every bucket has a route
  std::uint64_t unproven = 0;   // torn, or another's
  std::uint64_t went_back = 0;  // an epoch or a version
  std::uint64_t third = 0;      // neither the old nor the new route
  std::uint64_t torn_pair = 0;  // words of two positions
  std::uint64_t bad_shard = 0;
  std::uint64_t lost_wakes = 0;
  std::uint64_t looks = 0;
  std::uint64_t repeats = 0;  // lookups that needed another pass: not a fault
};

void look(const SegmentMemory<StdAtomics, false>& memory, const Population& all, std::size_t seed,
          const std::atomic<bool>& done, Faults& faults) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> last(all.tenants.size(), 0);
  std::uint64_t last_version = 0;
  while (!done.load()) {
    const std::size_t i =
        random() % 3 == 0 ? all.first_twin + random() % kTwins : random() % all.tenants.size();
    const Tenant& tenant = all.tenants[i];
    const Resolution found = resolve<StdAtomics>(memory, tenant.id);
    ++faults.looks;
    faults.repeats += found.passes > 1;
    if (found.answer == Answer::undetermined) {
      ++faults.undetermined;
      continue;
    }
    if (found.answer == Answer::unknown) {
      ++faults.unknown;
      continue;
    }
    const bool from_bucket = found.source == RouteSource::bucket;
    const std::uint64_t key = from_bucket ? bucket_key(tenant.bucket) : tenant.key;
    faults.unproven += found.route != proven(key, found.route.epoch, from_bucket);
    faults.went_back += found.route.epoch < last[i];
    last[i] = found.route.epoch;
    if (i >= all.first_twin) faults.third += from_bucket == (found.route.epoch % 2 == 1);
    if (faults.looks % 16 != 0) continue;
    if (const auto words = read_pair(memory.control().position)) {
      const auto [incarnation, version, nonce, replay_from] = *words;
      faults.torn_pair += nonce != mix(version) || replay_from != version + 1 || incarnation != 1;
      faults.went_back += version < last_version;
      last_version = version;
    }
    const ShardView shard = memory.topology().shard(0);
    const std::string_view weight_text = shard.primary();
    faults.bad_shard += shard.name() != "shard" || weight_text != std::string(shard.weight(), 'p');
  }
}

// Sleeps on the version's word. A wake is lost if it slept its time out though the version moved.
void sleep_on_version(const SegmentMemory<StdAtomics, false>& memory, const std::atomic<bool>& done,
                      Faults& faults) {
  while (!done.load()) {
    const std::uint32_t word = load_wait_word<StdAtomics>(memory.control().version_wait);
    const auto before = std::chrono::steady_clock::now();
    StdAtomics::wait(memory.control().version_wait, word, kSleepMax);
    ++faults.looks;
    const bool timed_out = std::chrono::steady_clock::now() - before >= kSleepMax - 100ms;
    faults.lost_wakes += timed_out && !done.load();
  }
}

// The directory and the syncer of this test in one.
class Churn {
 public:
  Churn(Writer& writer, const Population& all) : writer_(writer), all_(all), overrides_(kIds, 0) {
    next_version();
    for (int i = 0; i < 8; ++i) change_topology();
    REQUIRE(writer_.begin_load(needs(), 1, 1, false).ok());
    for (std::uint64_t b = 0; b < kBuckets; ++b) {
      buckets_.push_back(version_);
      REQUIRE(writer_.load_fallback(b, bucket_route(b)) == Applied::changed);
    }
    // Odd, so the twins begin with an override.
    for (std::size_t i = all_.first_twin; i < kIds; ++i) {
      overrides_[i] = version_;
      REQUIRE(writer_.load(all_.tenants[i].id, route(i)) == Applied::changed);
    }
    writer_.switch_generation();
    publish();
  }

  void run(std::chrono::nanoseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    auto next_switch = std::chrono::steady_clock::now() + kSwitchEvery;
    while (std::chrono::steady_clock::now() < end) {
      apply_batch();
      if (writer_.building()) {
        build_a_slice();
      } else if (std::chrono::steady_clock::now() >= next_switch) {
        begin_build();
        next_switch += kSwitchEvery;
      }
      std::this_thread::yield();
    }
  }

  // What every tenant must show when all is quiet.
  void check_all(const SegmentMemory<StdAtomics, false>& memory) const {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < kIds; ++i) {
      const Resolution found = resolve<StdAtomics>(memory, all_.tenants[i].id);
      const RouteFields expected =
          overrides_[i] != 0 ? route(i) : bucket_route(all_.tenants[i].bucket);
      wrong += found.route != expected;
    }
    CHECK(wrong == 0);
    CHECK(batches_ > 150);
    CHECK(switches_ > 20);
    CHECK(removals_ > 100);
    CHECK(version_ > kEpochInlineMax);
  }

 private:
  static TableNeeds needs() { return {kIds, 60'000, FallbackKind::buckets, kBuckets}; }
  RouteFields route(std::size_t i) const {
    return proven(all_.tenants[i].key, overrides_[i], false);
  }
  RouteFields bucket_route(std::uint64_t b) const {
    return proven(bucket_key(b), buckets_[b], true);
  }

  // Versions alternate in parity with the batches; some are skipped, as others' commits would be.
  void next_version() {
    version_ = version_ == 0 ? kFirstVersion | 1 : version_ + 1 + 2 * (random_() % 4);
  }
  void publish() {
    writer_.publish({1, version_, mix(version_), version_ + 1});
    ++batches_;
  }

  void change_topology() {
    ShardSpec shard;
    shard.name = "shard";
    shard.weight = static_cast<std::uint32_t>(random_() % 8);
    shard.primary = std::string(shard.weight, 'p');
    REQUIRE(writer_.publish_topology({shard}).ok());
  }

  template <class Change>
  void apply(Change&& change) {
    Applied applied = change();
    if (applied == Applied::no_room) {
      if (!writer_.building()) begin_copy();
      while (writer_.building()) build_a_slice();
      applied = change();
    }
    REQUIRE(applied == Applied::changed);
  }
  void put(std::size_t i) {
    overrides_[i] = version_;
    apply([&] { return writer_.put(all_.tenants[i].id, route(i)); });
  }
  void put_bucket(std::uint64_t b) {
    buckets_[b] = version_;
    apply([&] { return writer_.put_fallback(b, bucket_route(b)); });
  }
  void remove(std::size_t i) {
    overrides_[i] = 0;
    REQUIRE(writer_.remove(all_.tenants[i].id, version_) == Applied::changed);
    ++removals_;
  }

  // Topology, overrides, buckets, removals, position: the order of a batch.
  void apply_batch() {
    next_version();
    if (batches_ % 64 == 0) change_topology();
    std::vector<std::size_t> removed;
    std::vector<std::uint64_t> changed_buckets;
    for (int n = 0; n < 6; ++n) {
      const std::size_t i = random_() % all_.first_twin;
      if (overrides_[i] == version_) continue;
      if (overrides_[i] == 0 || random_() % 2 == 0) {
        put(i);
      } else {  // what it uncovers is stamped anew
        removed.push_back(i);
        changed_buckets.push_back(all_.tenants[i].bucket);
      }
    }
    for (std::size_t i = all_.first_twin; i < kIds; ++i) {
      const bool has_override = overrides_[i] != 0;
      if (has_override != (version_ % 2 == 0)) continue;
      if (version_ % 2 == 1) {
        put(i);
      } else {
        removed.push_back(i);
      }
      changed_buckets.push_back(all_.tenants[i].bucket);
    }
    for (const std::uint64_t b : changed_buckets) {
      if (buckets_[b] != version_) put_bucket(b);
    }
    for (const std::size_t i : removed) {
      if (overrides_[i] != 0 && overrides_[i] != version_) remove(i);
    }
    publish();
  }

  void begin_copy() {
    TableNeeds extra = needs();
    extra.entries = kIds / 2;
    REQUIRE(writer_.begin_copy(extra, random_()).ok());
  }
  void begin_build() {
    if (random_() % 2 == 0) {
      begin_copy();
      return;
    }
    REQUIRE(writer_.begin_load(needs(), random_(), 1, false).ok());
    as_read_overrides_ = overrides_;
    as_read_buckets_ = buckets_;
    next_row_ = 0;
  }

  // A reload brings rows as they were when it began; what changed since went to both tables.
  void build_a_slice() {
    bool done = false;
    if (writer_.copying()) {
      const auto step = writer_.step_copy(100us);
      REQUIRE(step.ok());
      done = *step;
    } else {
      for (int n = 0; n < 200 && next_row_ < kIds + kBuckets; ++n, ++next_row_) load_row(next_row_);
      done = next_row_ == kIds + kBuckets;
    }
    if (!done) return;
    writer_.switch_generation();
    ++switches_;
  }
  void load_row(std::size_t row) {
    if (row >= kIds) {
      const std::uint64_t b = row - kIds;
      REQUIRE(writer_.load_fallback(b, proven(bucket_key(b), as_read_buckets_[b], true)) <=
              Applied::not_newer);
    } else if (as_read_overrides_[row] != 0) {
      const Tenant& tenant = all_.tenants[row];
      REQUIRE(writer_.load(tenant.id, proven(tenant.key, as_read_overrides_[row], false)) <=
              Applied::not_newer);
    }
  }

  Writer& writer_;
  const Population& all_;
  std::mt19937_64 random_{42};
  std::uint64_t version_ = 0;
  std::vector<std::uint64_t> overrides_;  // epoch of each tenant's override; 0: none
  std::vector<std::uint64_t> buckets_;    // epoch of each bucket
  std::vector<std::uint64_t> as_read_overrides_;
  std::vector<std::uint64_t> as_read_buckets_;
  std::size_t next_row_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t removals_ = 0;
};

}  // namespace

TEST_CASE("readers never see a torn, foreign, third or older route while everything changes") {
  const Population all;
  SegmentBuffer buffer(10'000);
  Writer writer = Writer::initialise(buffer.writable(), buffer.reserve());
  Churn churn(writer, all);

  std::atomic<bool> done{false};
  std::vector<Faults> faults(kReaders + 1);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kReaders; ++i) {
    threads.emplace_back([&, i] { look(buffer.readable(), all, i, done, faults[i]); });
  }
  threads.emplace_back([&] { sleep_on_version(buffer.readable(), done, faults[kReaders]); });
  churn.run(kDuration);
  done = true;
  writer.publish(writer.position());  // wakes the sleeper
  for (std::thread& thread : threads) thread.join();

  std::uint64_t looks = 0;
  std::uint64_t repeats = 0;
  for (const Faults& seen : faults) {
    CHECK(seen.undetermined == 0);
    CHECK(seen.unknown == 0);
    CHECK(seen.unproven == 0);
    CHECK(seen.went_back == 0);
    CHECK(seen.third == 0);
    CHECK(seen.torn_pair == 0);
    CHECK(seen.bad_shard == 0);
    CHECK(seen.lost_wakes == 0);
    CHECK(seen.looks > 0);
    looks += seen.looks;
    repeats += seen.repeats;
  }
  churn.check_all(buffer.readable());
  MESSAGE(looks, " lookups, ", repeats, " of them disturbed");
}
