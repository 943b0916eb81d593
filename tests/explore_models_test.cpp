// Small models of each protocol over Relacy: the functions that ship, one writer and one or two
// readers as threads, every interleaving of their accesses and, at each load, the older values that
// the C++ memory model allows (of which this search keeps one at a time; tests/README.md).
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>

#include "shm/batch_order.h"
#include "shm/pair_cell.h"
#include "shm/resolve.h"
#include "shm/table_writer.h"
#include "shm/wait_word.h"
#include "tests/relacy_atomics.h"

namespace fingerpost {
namespace {

using Atomics = RelacyAtomics;
using Word = Atomics::Word;

constexpr std::uint64_t kSeed = 1;
constexpr auto kPlain = std::memory_order_relaxed;  // before the threads begin

RouteFields active(std::uint16_t shard, std::uint64_t epoch) {
  return {State::active, shard, kNoShard, epoch};
}

// Two ids of the same length with the same home slot and fingerprint: only their bytes differ.
struct Twins {
  std::string one = "t00000";
  std::string two;

  Twins() {
    const std::uint64_t theirs = index_hash(one, kSeed);
    for (int n = 1; two.empty(); ++n) {
      std::string id = std::to_string(n);
      id = "t" + std::string(5 - id.size(), '0') + id;
      if (((index_hash(id, kSeed) ^ theirs) & 0x7FF) == 0) two = id;
    }
  }
};
const Twins& twins() {
  static const Twins twins;
  return twins;
}

template <class Model>
void search(rl::scheduler_type_e scheduler, unsigned bound = 0) {
  std::ostringstream out;
  rl::test_params params;
  params.search_type = scheduler;
  params.context_bound = bound;
  params.output_stream = &out;
  std::ostream nowhere(nullptr);
  params.progress_stream = &nowhere;
  const bool right = rl::simulate<Model>(params);
  MESSAGE(params.stop_iteration << " executions");
  INFO(out.str());
  CHECK(right);
}
constexpr auto kAll = rl::sched_full;
constexpr auto kBounded = rl::sched_bound;

// --- one slot ---

template <int kReaders>
struct SlotModel : rl::test_suite<SlotModel<kReaders>, 1 + kReaders> {
  Slot<Atomics> slot;

  void before() {
    slot.route.store(0, kPlain);
    slot.header.store(0, kPlain);
    slot.id[0].store(0, kPlain);
    write(twins().one, 10);
  }
  void thread(unsigned index) {
    if (index == 0) {
      write(twins().two, 20);
      slot.route.store(21, kRelease);
    } else {
      const std::uint64_t one = read(twins().one);
      RL_ASSERT(one == 0 || one == 10);
      const std::uint64_t two = read(twins().two);
      RL_ASSERT(two == 0 || two == 20 || two == 21);
      if (two != 0) RL_ASSERT(read(twins().one) == 0);
    }
  }
  void write(const std::string& id, std::uint64_t route) {
    rewrite_slot(slot, PackedId<Atomics>(id), 0, route, false, [] {});
  }
  std::uint64_t read(const std::string& id) {
    return read_slot(slot, PackedId<Atomics>(id), RecordsView<Atomics>{});
  }
};

TEST_CASE("a slot rewritten for another id, and updated, never shows one id the other's route") {
  search<SlotModel<1>>(kAll);
  search<SlotModel<2>>(kBounded, 3);
}

// --- words that belong together ---

template <int kReaders>
struct PairModel : rl::test_suite<PairModel<kReaders>, 1 + kReaders> {
  PairCell<Atomics, 2> cell;

  void before() {
    cell.index.store(0, kPlain);
    for (auto& copy : cell.copy) {
      for (Word& word : copy) word.store(0, kPlain);
    }
  }
  void thread(unsigned index) {
    if (index == 0) {
      for (std::uint64_t n = 1; n <= 2; ++n) {
        write_pair(cell, std::array<std::uint64_t, 2>{n, n});
      }
    } else {
      const auto values = read_pair(cell);
      RL_ASSERT(values.has_value());
      RL_ASSERT((*values)[0] == (*values)[1]);
    }
  }
};

TEST_CASE("words in two copies are read as they were written together, in bounded passes") {
  search<PairModel<1>>(kAll);
  search<PairModel<2>>(kBounded, 2);
}

// --- a table ---

struct Half {
  TableHeader<Atomics> header;
  Group<Atomics> groups[1];
  Slot<Atomics> slots[kGroupSlots];
  Word fallback[1];
  Word records[2];

  // As a mapping has it: zero.
  void clear() {
    for (Word* word : {&header.seed, &header.group_count, &header.probe_limit,
                       &header.fallback_kind, &header.fallback_count, &header.records_words,
                       &header.generation, &header.incarnation, &header.records_end, &groups[0].low,
                       &groups[0].high, &fallback[0], &records[0], &records[1]}) {
      word->store(0, kPlain);
    }
    for (Slot<Atomics>& slot : slots) {
      for (Word* word : {&slot.route, &slot.header, &slot.id[0]}) word->store(0, kPlain);
    }
  }
  static constexpr Geometry geometry() { return {1, 1, 2}; }
  TableWriter<Atomics> begin(std::uint64_t generation) {
    const Generation<Atomics, true> table{geometry(), kSeed,    &header, groups,
                                          slots,      fallback, records};
    return TableWriter<Atomics>::initialise(table, FallbackKind::buckets, generation, 1);
  }
  bool generation(Generation<Atomics, false>& out) const {
    Geometry loaded;
    load_geometry(header, loaded);
    if (loaded.group_count != 1 || loaded.fallback_count != 1 || loaded.records_words != 2)
      return false;
    out = {loaded, header.seed.load(kAcquire), &header, groups, slots, fallback, records};
    return true;
  }
};

// root() and half_view(), as resolve asks for them.
struct Halves {
  Word root_word;
  Half halves[2];

  void clear() {
    root_word.store(0, kPlain);
    for (Half& half : halves) half.clear();
  }
  void turn(std::uint64_t generation, unsigned half) {
    root_word.store(encode_root(generation, half), kRelease);
  }
  const Word& root() const { return root_word; }
  struct View {
    const Half* half = nullptr;
    explicit operator bool() const { return half != nullptr; }
    std::uint64_t seed() const { return half->header.seed.load(kAcquire); }
    bool has_fallback() const { return half->header.fallback_count.load(kAcquire) != 0; }
    bool generation(Generation<Atomics, false>& out) const { return half->generation(out); }
  };
  View half_view(unsigned half) const { return {&halves[half]}; }
};

std::uint16_t shard_of(const Halves& memory, const std::string& id) {
  const Resolution told = resolve<Atomics>(memory, id);
  RL_ASSERT(told.answer == Answer::found);
  return told.route.shard;
}

template <int kReaders>
struct CollectModel : rl::test_suite<CollectModel<kReaders>, 1 + kReaders> {
  Half half;
  std::optional<TableWriter<Atomics>> writer;

  void before() {
    half.clear();
    writer.emplace(half.begin(1));
    writer->put_fallback(0, active(0, 1));
    writer->put(twins().one, active(1, 1));
  }
  // One batch: an override that shields its id from the bucket's change, the bucket, and the other
  // override away.
  void thread(unsigned index) {
    if (index == 0) {
      for (const BatchStep step : kBatchOrder) {
        if (step == BatchStep::overrides) writer->put(twins().two, active(0, 2));
        if (step == BatchStep::fallback) writer->put_fallback(0, active(3, 2));
        if (step == BatchStep::removals) writer->remove(twins().one, 2);
      }
    } else if (index == 1) {
      check(twins().one, 1, 3);
    } else {
      check(twins().two, 0, 0);
    }
  }
  void check(const std::string& id, unsigned before, unsigned after) {
    Generation<Atomics, false> table;
    RL_ASSERT(half.generation(table));
    const Home home = home_of(index_hash(id, kSeed), 1);
    for (int pass = 0;; ++pass) {
      RL_ASSERT(pass < 2);  // the bucket changes once
      const PassResult seen = look_once(table, id, PackedId<Atomics>(id), home);
      if (!seen.stable) continue;
      const std::uint16_t shard = decode_inline(seen.word).shard;
      RL_ASSERT(shard == before || shard == after);
      break;
    }
  }
};

TEST_CASE(
    "an override or its bucket: the old or the new of each id, never the bucket too early or "
    "late") {
  search<CollectModel<1>>(kBounded, 4);
  search<CollectModel<2>>(kBounded, 2);
}

template <int kReaders>
struct HalvesModel : rl::test_suite<HalvesModel<kReaders>, 1 + kReaders> {
  Halves memory;

  void before() {
    memory.clear();
    fill(1, 0, 1);
  }
  // Two switches: the first half is used again at once, the twins in the same slot.
  void thread(unsigned index) {
    if (index == 0) {
      fill(2, 1, 2);
      fill(3, 0, 3);
    } else {
      const std::uint16_t first = shard_of(memory, twins().one);
      RL_ASSERT(first >= 1 && first <= 3);
      const std::uint16_t second = shard_of(memory, twins().one);
      RL_ASSERT(second >= first && second <= 3);
    }
  }
  void fill(std::uint64_t generation, unsigned half, std::uint16_t shard) {
    auto writer = memory.halves[half].begin(generation);
    writer.put_fallback(0, active(9, 1));
    if (generation == 3) writer.put(twins().two, active(8, 1));
    writer.put(twins().one, active(shard, generation));
    memory.turn(generation, half);
  }
};

TEST_CASE(
    "a half may be rewritten at once: a lookup that began in it answers from one generation") {
  search<HalvesModel<1>>(kBounded, 2);
  search<HalvesModel<2>>(kBounded, 1);
}

// --- wait words ---

template <int kWaiters>
struct WaitModel : rl::test_suite<WaitModel<kWaiters>, 1 + kWaiters> {
  Word route;
  Atomics::Word32 wait_word;

  void before() {
    route.store(1, kPlain);
    wait_word.store(0, kPlain);
  }
  void thread(unsigned index) {
    if (index == 0) {
      route.store(2, kRelease);
      bump_wait_word<Atomics>(wait_word);
    } else {
      for (int look = 0;; ++look) {
        RL_ASSERT(look < 3);
        if (look_or_sleep<Atomics>(wait_word, [&] { return route.load(kAcquire) == 2; })) break;
      }
    }
  }
};

TEST_CASE("no wake is lost: who saw the old route is woken, or does not fall asleep") {
  search<WaitModel<1>>(kAll);
  search<WaitModel<2>>(kBounded, 5);
}

// --- all of it ---

struct WholeModel : rl::test_suite<WholeModel, 3> {
  Halves memory;
  Atomics::Word32 wait_word;
  std::optional<TableWriter<Atomics>> writer;

  void before() {
    memory.clear();
    wait_word.store(0, kPlain);
    writer.emplace(memory.halves[0].begin(1));
    writer->put_fallback(0, active(0, 1));
    writer->put(twins().one, active(1, 1));
    memory.turn(1, 0);
  }
  void thread(unsigned index) {
    if (index == 0) {
      writer->put_fallback(0, active(3, 2));
      writer->remove(twins().one, 2);
      writer->put(twins().two,
                  {State::migrating, 4, 5, 3});  // through a record, in the slot of one
      bump_wait_word<Atomics>(wait_word);
      auto next = memory.halves[1].begin(2);
      next.put_fallback(0, active(3, 2));
      next.put(twins().two, active(5, 4));
      memory.turn(2, 1);
      bump_wait_word<Atomics>(wait_word);
    } else if (index == 1) {
      const std::uint16_t shard = shard_of(memory, twins().one);
      RL_ASSERT(shard == 1 || shard == 3);
    } else {
      for (int look = 0;; ++look) {
        RL_ASSERT(look < 4);
        const bool arrived = look_or_sleep<Atomics>(wait_word, [&] {
          const std::uint16_t shard = shard_of(memory, twins().two);
          RL_ASSERT(shard == 0 || shard == 3 || shard == 4 || shard == 5);
          return shard == 5;
        });
        if (arrived) break;
      }
    }
  }
};

TEST_CASE("the whole lookup beside a batch, a reused slot, a switch, and a waiter") {
  search<WholeModel>(kBounded, 1);
}

}  // namespace
}  // namespace fingerpost
