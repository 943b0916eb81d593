// What a writer does, phase by phase, and what every id resolves to before and after each phase.
// The crash tests cut these, the exploration tests let a reader run beside them.
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "tests/route_truth.h"
#include "tests/small_segment.h"

namespace fingerpost {

struct Phase {
  enum class Kind : std::uint8_t {
    rows,        // a batch; `hidden` while an isolated generation takes it
    begin_copy,  // growth or clean-up, under `seed`
    step_copy,
    begin_load,  // a reload, for `needs` under `seed`, as `incarnation`
    load,        // rows of the reload
    switch_over,
    supersede,
  };

  Kind kind = Kind::rows;
  Rows rows;
  bool hidden = false;
  std::uint64_t seed = 0;
  TableNeeds needs;
  std::uint64_t incarnation = 1;
  std::optional<Truth> becomes;  // of a switch_over to a reload
};

struct Scenario {
  std::string name;
  Truth before;
  TableNeeds needs;                 // of the first generation
  std::vector<ShardSpec> topology;  // of the first generation
  std::vector<Phase> prelude;       // not looked at
  std::vector<Phase> phases;
  std::vector<std::string> ids;  // that readers ask for: tenants, objects, all parts

  // What is true before the first phase and after each.
  std::vector<Truth> truths() const {
    std::vector<Truth> list{before};
    for (const Phase& phase : prelude) list.front() = after(phase, list.front());
    for (const Phase& phase : phases) list.push_back(after(phase, list.back()));
    return list;
  }

 private:
  static Truth after(const Phase& phase, Truth truth) {
    if (phase.becomes) return *phase.becomes;
    if (phase.kind == Phase::Kind::rows && !phase.hidden) truth.apply(phase.rows);
    return truth;
  }
};

template <class A>
void perform(SegmentWriter<A>& writer, const Phase& phase) {
  switch (phase.kind) {
    case Phase::Kind::rows:
      apply_rows(writer, phase.rows);
      break;
    case Phase::Kind::begin_copy:
      (void)writer.begin_copy({}, phase.seed);
      break;
    case Phase::Kind::step_copy:  // a table of 64 slots is one slice
      (void)writer.step_copy(std::chrono::nanoseconds(0));
      break;
    case Phase::Kind::begin_load:
      (void)writer.begin_load(phase.needs, phase.seed, phase.incarnation, phase.incarnation != 1);
      break;
    case Phase::Kind::load:
      for (const auto& [id, route] : phase.rows.overrides) writer.load(id, route);
      for (const auto& [id, split] : phase.rows.splits) writer.load_split(id, split);
      for (const auto& [index, route] : phase.rows.rules) writer.load_fallback(index, route);
      break;
    case Phase::Kind::switch_over:
      writer.switch_generation();
      break;
    case Phase::Kind::supersede:
      writer.supersede();
      break;
  }
}

inline constexpr std::uint64_t kFirstSeed = 1;

// Lays the scenario's first generation out, as a syncer does at its first start, and plays the
// prelude.
template <class A>
SegmentWriter<A> lay_out(SmallSegment& segment, const Scenario& scenario) {
  auto writer = SegmentWriter<A>::initialise(segment.writable<A>(), reserve_nothing());
  (void)writer.publish_topology(scenario.topology);
  (void)writer.begin_load(scenario.needs, kFirstSeed, scenario.before.position.incarnation, false);
  for (const auto& [id, route] : scenario.before.overrides) writer.load(id, route);
  for (const auto& [id, split] : scenario.before.splits) writer.load_split(id, split);
  for (std::size_t i = 0; i < scenario.before.rules.size(); ++i) {
    if (scenario.before.rules[i].state != State::none) {
      writer.load_fallback(i, scenario.before.rules[i]);
    }
  }
  writer.switch_generation();
  writer.publish(scenario.before.position);
  for (const Phase& phase : scenario.prelude) perform(writer, phase);
  return writer;
}

// --- the town: the ids and routes that the scenarios are made of ---

inline RouteFields active(std::uint16_t shard, std::uint64_t epoch) {
  return {State::active, shard, kNoShard, epoch};
}
inline RouteFields migrating(std::uint16_t shard, std::uint16_t target, std::uint64_t epoch) {
  return {State::migrating, shard, target, epoch};
}

inline ShardSpec shard_named(const std::string& name, const std::string& primary) {
  ShardSpec spec;
  spec.name = name;
  spec.primary = primary;
  return spec;
}

// The first of prefix0000…, prefix0001…, zero-filled to `length` bytes, that `wanted` accepts.
inline std::string find_id(const std::string& prefix, std::size_t length,
                           const std::function<bool(const std::string&)>& wanted) {
  for (std::uint64_t n = 0;; ++n) {
    std::string digits = std::to_string(n);
    digits.insert(0, length - prefix.size() - digits.size(), '0');
    if (wanted(prefix + digits)) return prefix + digits;
  }
}

// Ids that only a comparison of all their bytes tells apart: the same length, home slot,
// fingerprint and bucket (under the first seed, one group, two buckets).
struct Town {
  std::string ann = find_id("tenant-a-", 14, [](const std::string&) { return true; });
  std::string ben = twin_of("tenant-b-", ann);
  std::string cat = twin_of("tenant-c-", ann);
  std::string dan = "dan";  // anywhere, in nobody's way
  std::string long_ann = long_twin_of("a", std::string());
  std::string long_ben = long_twin_of("b", long_ann);
  std::string moving = "moving-tenant";
  std::string gone = "gone-tenant";

  static std::uint64_t bucket_of(const std::string& id) { return placement_hash(id) % 2; }
  std::uint64_t bucket() const { return bucket_of(ann); }

  // 0 to 3: shards. The town's first generation has one group.
  Scenario scenario(const std::string& name) const {
    Scenario scenario;
    scenario.name = name;
    scenario.before.kind = FallbackKind::buckets;
    scenario.before.rules = {active(0, 1), active(0, 1)};
    scenario.before.overrides = {{ann, active(1, 2)},
                                 {dan, active(2, 2)},
                                 {long_ann, active(3, 2)},
                                 {moving, migrating(1, 2, 2)},
                                 {gone, {State::deleted, 1, kNoShard, 2}}};
    scenario.before.position = {1, 2, 77, 0};
    scenario.needs = {8, 64, FallbackKind::buckets, 2};
    scenario.topology = topology();
    scenario.ids = {ann, ben, cat, dan, long_ann, long_ben, moving, gone};
    return scenario;
  }

  static std::vector<ShardSpec> topology() {
    return {shard_named("s0", "h0:1"), shard_named("s1", "h1:1"), shard_named("s2", "h2:1"),
            shard_named("s3", "h3:1")};
  }

 private:
  static std::string twin_of(const std::string& prefix, const std::string& other) {
    const std::uint64_t theirs = index_hash(other, kFirstSeed);
    return find_id(prefix, other.size(), [&](const std::string& id) {
      return ((index_hash(id, kFirstSeed) ^ theirs) & 0x7FF) == 0 &&
             bucket_of(id) == bucket_of(other);
    });
  }
  // The first 40 bytes of all of these are the same: their tails tell them apart.
  static std::string long_twin_of(const std::string& prefix, const std::string& other) {
    const std::string head(40, 'x');
    if (other.empty()) return head + find_id(prefix, 14, [](const std::string&) { return true; });
    const std::uint64_t theirs = index_hash(other, kFirstSeed);
    return head + find_id(prefix, 14, [&](const std::string& tail) {
             return ((index_hash(head + tail, kFirstSeed) ^ theirs) & 0x7FF) == 0 &&
                    bucket_of(head + tail) == bucket_of(other);
           });
  }
};

inline Phase batch(Rows rows, std::uint64_t version) {
  Phase phase;
  phase.rows = std::move(rows);
  phase.rows.position = Position{1, version, version + 1'000, 0};
  return phase;
}
inline Rows put_rows(std::vector<std::pair<std::string, RouteFields>> overrides) {
  Rows rows;
  rows.overrides = std::move(overrides);
  return rows;
}
inline Rows split_rows(std::vector<std::pair<std::string, SplitFields>> splits) {
  Rows rows;
  rows.splits = std::move(splits);
  return rows;
}
inline Rows remove_rows(std::vector<std::pair<std::string, std::uint64_t>> removals) {
  Rows rows;
  rows.removals = std::move(removals);
  return rows;
}

// Rows of a whole directory, as a reload reads them.
inline Rows rows_of(const Truth& truth) {
  Rows rows;
  for (const auto& [id, route] : truth.overrides) rows.overrides.emplace_back(id, route);
  for (const auto& [id, split] : truth.splits) rows.splits.emplace_back(id, split);
  for (std::size_t i = 0; i < truth.rules.size(); ++i) rows.rules.emplace_back(i, truth.rules[i]);
  return rows;
}

inline Phase phase_of(Phase::Kind kind, std::uint64_t seed = 0) {
  Phase phase;
  phase.kind = kind;
  phase.seed = seed;
  return phase;
}

}  // namespace fingerpost
