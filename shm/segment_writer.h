// The one writer of a segment's bytes: batches of changes, generations, positions. Knows no file
// and no lock: the caller holds those, and says through `Reserve` how a half gets more memory.
//
// One thread of one process. Whatever subset of its stores is visible under the ordering rule,
// readers read right, and `adopt` can go on from the bytes alone.
//
// A batch, in this order (anything else shows an id a route it never had): topology; routes of
// overrides; fallback words; removals; then publish(). The caller keeps to it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shm/counters.h"
#include "shm/segment_memory.h"
#include "shm/status.h"
#include "shm/table_needs.h"
#include "shm/table_writer.h"
#include "shm/topology_writer.h"
#include "shm/wait_word.h"

namespace fingerpost {

// Where the data of a segment stands in which history.
struct Position {
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;
  std::uint64_t nonce = 0;
  std::uint64_t replay_from = 0;  // lowest version of a row not applied; 0: none

  bool operator==(const Position&) const = default;
};

enum class Applied : std::uint8_t {
  changed,    // something was stored
  not_newer,  // ignored: the table has the same or a newer epoch, or has removed the id since
  full,       // the configured capacity is reached: nothing stored
  no_room,    // a rebuild must make room first: nothing stored
  refused,    // its probe chain is too long under this seed: nothing stored
};

// Makes `bytes` of that half allocated, zero where they never were. Called with growing values
// only.
using Reserve = std::function<Status(unsigned half, std::uint64_t bytes)>;

template <class A>
class SegmentWriter {
 public:
  // Takes over zeroed memory whose fixed part is allocated; writes everything but `complete`.
  static SegmentWriter initialise(const SegmentMemory<A, true>& memory, Reserve reserve);

  // Goes on from what a dead writer left. corrupt if the bytes make no sense.
  static Result<SegmentWriter> adopt(const SegmentMemory<A, true>& memory, Reserve reserve);

  // --- batches ---
  Status publish_topology(const std::vector<ShardSpec>& shards);
  // Adds shards whose names the topology does not have; the others stay as they are.
  Status add_shards(const std::vector<ShardSpec>& shards);
  Applied put(std::string_view id, const RouteFields& route);
  // A tenant in parts, of which there are 2 to 1,024.
  Applied put_split(std::string_view id, const SplitFields& split);
  Applied put_fallback(std::uint64_t index, const RouteFields& route);
  // `id` will be put soon: fetches the lines that this takes.
  void expect(std::string_view id) const noexcept {
    if (live_) live_->expect(id);
  }
  // Removes what is not newer than `version`.
  Applied remove(std::string_view id, std::uint64_t version);
  // The batch is complete: stores the position, bumps and wakes the words it touched.
  void publish(const Position& position);

  // --- generations ---
  // A copy of the live table into the other half, with room for `extra` besides; growth, clean-up,
  // another seed.
  Status begin_copy(const TableNeeds& extra, std::uint64_t seed);
  // An empty generation in the other half, to be filled by the `load`s. `isolated`:
  // changes of another history; until the switch, put() and the others go to it alone.
  Status begin_load(const TableNeeds& needs, std::uint64_t seed, std::uint64_t incarnation,
                    bool isolated);
  Applied load(std::string_view id, const RouteFields& route);
  Applied load_split(std::string_view id, const SplitFields& split);
  Applied load_fallback(std::uint64_t index, const RouteFields& route);
  // `id` will be loaded soon: fetches the lines that this takes.
  void expect_load(std::string_view id) const noexcept { building_->table.expect(id); }
  // Copies slots for at most `budget`; true when there is nothing left to copy. Only after
  // begin_copy. no_space if the new generation cannot hold them (it is discarded then).
  Result<bool> step_copy(std::chrono::nanoseconds budget);
  // Turns the root to the generation that was built. Wakes everybody.
  void switch_generation();
  void discard_generation() { building_.reset(); }
  bool building() const { return building_.has_value(); }
  bool copying() const { return building_ && building_->is_copy; }

  // Marks the segment superseded and wakes everybody; its successor must be under the name already.
  void supersede();

  // --- what it holds ---
  bool has_table() const { return live_.has_value(); }
  const TableWriter<A>& table() const { return *live_; }
  // The generation under construction; only while building().
  const TableWriter<A>& next_table() const { return building_->table; }
  // The live generation, or before the first switch the one that is being loaded.
  const TableWriter<A>& readable_table() const { return live_ ? *live_ : building_->table; }
  const TopologyWriter<A>& topology() const { return *topology_; }
  std::uint64_t generation() const { return generation_; }
  std::uint64_t incarnation() const { return incarnation_; }
  Position position() const;
  FallbackKind fallback_kind() const { return fallback_kind_; }
  // The generation whose answers put() and the others change first: the live one, or one of another
  // history that is being built.
  const TableWriter<A>& changed_table() const {
    return live_ && !(building_ && building_->isolated) ? *live_ : building_->table;
  }
  // Whether a table with what is there and `extra` stays below the point where a rebuild is due.
  bool has_room(const TableNeeds& extra) const;
  bool rebuild_due() const;

  void add(Counter counter, std::uint64_t count = 1);
  void set(Counter gauge, std::uint64_t value);
  std::uint64_t get(Counter counter) const;
  const SegmentMemory<A, true>& memory() const { return memory_; }

 private:
  struct Building {
    TableWriter<A> table;
    unsigned half = 0;
    std::uint64_t incarnation = 0;
    FallbackKind fallback_kind = FallbackKind::none;
    bool is_copy = false;
    bool isolated = false;
    std::uint64_t next_slot = 0;
    std::unordered_map<std::string, std::uint64_t> removed;  // id → version; until it ends
  };

  SegmentWriter(const SegmentMemory<A, true>& memory, Reserve reserve)
      : memory_(memory), reserve_(std::move(reserve)) {}

  Status begin(const TableNeeds& needs, std::uint64_t seed, std::uint64_t incarnation, bool is_copy,
               bool isolated);
  static Applied applied(Put put);
  // Puts into every generation that takes the change; `store(TableWriter&)` returns a Put.
  template <class Store>
  Applied put_everywhere(Store&& store);
  template <class Store>
  Applied put_entry(std::string_view id, Store&& store);
  // Into the generation under construction alone, unless `id` was removed at `version` or later.
  template <class Store>
  Applied load_entry(std::string_view id, std::uint64_t version, Store&& store);
  void touch(std::uint64_t hash) { touched_ |= std::uint64_t{1} << hash % kPlacementWaits; }
  bool is_full_for(const TableWriter<A>& table, std::string_view id) const {
    return table.live() >= memory_.plan().capacity && table.find(id).state == State::none;
  }
  void wake(std::uint64_t mask);  // the placement words of the mask
  void wake_all();                // version word and placement words
  void store_gauges();

  SegmentMemory<A, true> memory_;
  Reserve reserve_;
  std::optional<TopologyWriter<A>> topology_;
  std::optional<TableWriter<A>> live_;
  std::optional<Building> building_;
  unsigned live_half_ = 0;
  std::uint64_t generation_ = 0;
  std::uint64_t incarnation_ = 0;
  FallbackKind fallback_kind_ = FallbackKind::none;
  std::uint64_t touched_ = 0;  // placement wait words of the batch at hand
};

template <class A>
SegmentWriter<A> SegmentWriter<A>::initialise(const SegmentMemory<A, true>& memory,
                                              Reserve reserve) {
  SegmentWriter writer(memory, std::move(reserve));
  writer.topology_ =
      TopologyWriter<A>::initialise(memory.topology_region(), memory.plan().topology_bytes);
  auto& control = memory.control();
  // No generation yet: the root names the half of which nothing is allocated, so nobody looks into
  // the one that the first load fills.
  control.root.store(encode_root(0, 1), kRelease);  // pairs: root
  const auto unknown = static_cast<std::uint64_t>(kTimeUnknown);
  control.heartbeat_ns.store(unknown, kRelease);    // pairs: freshness
  control.last_sync_ns.store(unknown, kRelease);    // pairs: freshness
  control.catch_up_by_ns.store(unknown, kRelease);  // pairs: freshness
  return writer;
}

template <class A>
Result<SegmentWriter<A>> SegmentWriter<A>::adopt(const SegmentMemory<A, true>& memory,
                                                 Reserve reserve) {
  SegmentWriter writer(memory, std::move(reserve));
  auto& control = memory.control();
  const std::uint64_t root = control.root.load(kAcquire);
  if (root_superseded(root)) return Status(Code::conflict, "the segment is marked superseded");
  Generation<A, false> found;
  if (!memory.generation(root_half(root), found)) {
    return Status(Code::corrupt, "the live generation does not lie in what is allocated");
  }
  if (found.header->generation.load(kAcquire) != root_generation(root)) {
    return Status(Code::corrupt, "the live half holds another generation than the root says");
  }
  const std::uint64_t records_end = found.header->records_end.load(kAcquire);  // pairs: records-end
  if (records_end > found.geometry.records_words) {
    return Status(Code::corrupt,
                  "the live generation has given out " + std::to_string(records_end) + " of " +
                      std::to_string(found.geometry.records_words) + " words of records");
  }
  auto topology = TopologyWriter<A>::adopt(memory.topology_region(), memory.plan().topology_bytes);
  if (!topology.ok()) return topology.status();
  Generation<A, true> table{.geometry = found.geometry, .seed = found.seed};
  place_generation(memory.half(root_half(root)), table);
  writer.live_half_ = root_half(root);
  writer.generation_ = root_generation(root);
  writer.incarnation_ = table.header->incarnation.load(kAcquire);
  writer.fallback_kind_ = static_cast<FallbackKind>(table.header->fallback_kind.load(kAcquire));
  writer.topology_ = std::move(*topology);
  writer.live_.emplace(table);
  const std::uint64_t mended = writer.live_->adopt();
  writer.add(Counter::adoptions);
  writer.add(Counter::slots_mended, mended);
  writer.store_gauges();
  writer.wake_all();
  return writer;
}

template <class A>
Status SegmentWriter<A>::publish_topology(const std::vector<ShardSpec>& shards) {
  Status status = topology_->publish(shards);
  if (status.ok()) add(Counter::topology_changes);
  touched_ = ~std::uint64_t{0};
  return status;
}

template <class A>
Status SegmentWriter<A>::add_shards(const std::vector<ShardSpec>& shards) {
  std::vector<ShardSpec> missing;
  for (const ShardSpec& spec : shards) {
    if (topology_->index_of(spec.name) == kNoShard) missing.push_back(spec);
  }
  return topology_->add(missing);
}

template <class A>
Applied SegmentWriter<A>::applied(Put put) {
  switch (put) {
    case Put::inserted:
    case Put::updated:
      return Applied::changed;
    case Put::not_newer:
      return Applied::not_newer;
    case Put::no_room:
      return Applied::no_room;
    case Put::chain_too_long:
      break;
  }
  return Applied::refused;
}

template <class A>
template <class Store>
Applied SegmentWriter<A>::put_everywhere(Store&& store) {
  Applied result = Applied::not_newer;
  const bool to_live = live_ && !(building_ && building_->isolated);
  if (to_live) {
    result = applied(store(*live_));
    if (result != Applied::changed && result != Applied::not_newer) return result;
  }
  if (building_) {
    // Also what is not newer for the live table: a reload may have read the directory before it.
    const Applied built = applied(store(building_->table));
    if (!to_live) return built;
    // Served already; a new generation that cannot hold it is of no use.
    if (built != Applied::changed && built != Applied::not_newer) {
      add(Counter::rebuild_failures);
      building_.reset();
    }
  }
  return result;
}

template <class A>
Applied SegmentWriter<A>::put(std::string_view id, const RouteFields& route) {
  return put_entry(id, [&](TableWriter<A>& table) { return table.put(id, route); });
}

template <class A>
Applied SegmentWriter<A>::put_split(std::string_view id, const SplitFields& split) {
  return put_entry(id, [&](TableWriter<A>& table) { return table.put_split(id, split); });
}

template <class A>
template <class Store>
Applied SegmentWriter<A>::put_entry(std::string_view id, Store&& store) {
  if (is_full_for(changed_table(), id)) return Applied::full;
  const Applied result = put_everywhere(store);
  if (result == Applied::changed) {
    if (building_ && !building_->removed.empty()) building_->removed.erase(std::string(id));
    touch(placement_hash(id));
    add(Counter::rows_applied);
  } else if (result == Applied::not_newer) {
    add(Counter::rows_not_newer);
  }
  return result;
}

template <class A>
Applied SegmentWriter<A>::put_fallback(std::uint64_t index, const RouteFields& route) {
  const Applied result =
      put_everywhere([&](TableWriter<A>& table) { return table.put_fallback(index, route); });
  if (result == Applied::changed) {
    // A bucket's tenants share one wait word only where the word count divides the bucket count.
    const std::uint64_t count = readable_table().geometry().fallback_count;
    if (count % kPlacementWaits == 0) {
      touch(index);
    } else {
      touched_ = ~std::uint64_t{0};
    }
    add(Counter::rows_applied);
  } else if (result == Applied::not_newer) {
    add(Counter::rows_not_newer);
  }
  return result;
}

template <class A>
Applied SegmentWriter<A>::remove(std::string_view id, std::uint64_t version) {
  bool removed = false;
  if (live_ && !(building_ && building_->isolated)) removed = live_->remove(id, version);
  if (building_) {
    removed |= building_->table.remove(id, version);
    std::uint64_t& removed_at = building_->removed[std::string(id)];
    removed_at = std::max(removed_at, version);
  }
  if (!removed) return Applied::not_newer;
  touch(placement_hash(id));
  add(Counter::rows_removed);
  return Applied::changed;
}

template <class A>
void SegmentWriter<A>::publish(const Position& position) {
  write_pair(memory_.control().position,
             std::array<std::uint64_t, kPositionWords>{position.incarnation, position.version,
                                                       position.nonce, position.replay_from});
  store_gauges();
  bump_wait_word<A>(memory_.control().version_wait);
  wake(touched_);
  touched_ = 0;
}

template <class A>
Position SegmentWriter<A>::position() const {
  const auto words = read_pair(memory_.control().position);
  return words ? Position{(*words)[0], (*words)[1], (*words)[2], (*words)[3]} : Position{};
}

template <class A>
bool SegmentWriter<A>::has_room(const TableNeeds& extra) const {
  const auto& table = readable_table();
  const auto slots = static_cast<double>(table.slot_count());
  return static_cast<double>(table.live() + table.vacant() + extra.entries) <=
             kRebuildLoad * slots &&
         table.geometry().records_words - table.records_end() >= extra.record_words;
}

template <class A>
bool SegmentWriter<A>::rebuild_due() const {
  return live_ && (live_->rebuild_due() || live_->geometry().records_words - live_->records_end() <
                                               live_->geometry().records_words / 8);
}

template <class A>
Status SegmentWriter<A>::begin(const TableNeeds& needs, std::uint64_t seed,
                               std::uint64_t incarnation, bool is_copy, bool isolated) {
  building_.reset();
  const Geometry geometry = geometry_for(needs);
  if (!geometry.plausible() || geometry.bytes() > memory_.plan().half_bytes) {
    return {Code::no_space, "a generation for " + std::to_string(needs.entries) +
                                " entries needs " + std::to_string(geometry.bytes()) +
                                " bytes, the segment was made for " +
                                std::to_string(memory_.plan().half_bytes) + " (capacity " +
                                std::to_string(memory_.plan().capacity) + ")"};
  }
  const unsigned half = live_ ? 1 - live_half_ : 0;
  auto& allocated = memory_.control().allocated[half];
  const std::uint64_t bytes = std::min(reserved_for(geometry), memory_.plan().half_bytes);
  if (allocated.load(kAcquire) < bytes) {
    if (Status status = reserve_(half, bytes); !status.ok()) return status;
    allocated.store(bytes, kRelease);  // pairs: allocated
  }
  building_.emplace(
      Building{TableWriter<A>::initialise(memory_.half(half), geometry, needs.fallback_kind, seed,
                                          generation_ + 1, incarnation),
               half,
               incarnation,
               needs.fallback_kind,
               is_copy,
               isolated,
               0,
               {}});
  return {};
}

template <class A>
Status SegmentWriter<A>::begin_copy(const TableNeeds& extra, std::uint64_t seed) {
  TableNeeds needs;
  needs.entries = live_->live() + extra.entries;
  if (extra.entries == 0) {
    needs.entries = std::min(entries_of_next(live_->slot_count(), live_->live()),
                             std::max(memory_.plan().capacity, live_->live()));
  }
  needs.record_words = live_->records_live() + extra.record_words;
  needs.fallback_kind = fallback_kind_;
  needs.fallback_count = live_->geometry().fallback_count;
  if (Status status = begin(needs, seed, incarnation_, true, false); !status.ok()) return status;
  // Fallback words are few: copied at once.
  for (std::uint64_t i = 0; i < needs.fallback_count; ++i) {
    const RouteFields route = live_->fallback(i);
    if (route.state != State::none) building_->table.put_fallback(i, route);
  }
  return {};
}

template <class A>
Status SegmentWriter<A>::begin_load(const TableNeeds& needs, std::uint64_t seed,
                                    std::uint64_t incarnation, bool isolated) {
  return begin(needs, seed, incarnation, false, isolated && live_);
}

template <class A>
Applied SegmentWriter<A>::load(std::string_view id, const RouteFields& route) {
  return load_entry(id, route.epoch, [&](TableWriter<A>& table) { return table.put(id, route); });
}

template <class A>
Applied SegmentWriter<A>::load_split(std::string_view id, const SplitFields& split) {
  return load_entry(id, split.read_at,
                    [&](TableWriter<A>& table) { return table.put_split(id, split); });
}

template <class A>
template <class Store>
Applied SegmentWriter<A>::load_entry(std::string_view id, std::uint64_t version, Store&& store) {
  if (!building_->removed.empty()) {  // as in nearly every load
    const auto gone = building_->removed.find(std::string(id));
    if (gone != building_->removed.end() && gone->second >= version) return Applied::not_newer;
  }
  if (is_full_for(building_->table, id)) return Applied::full;
  return applied(store(building_->table));
}

template <class A>
Applied SegmentWriter<A>::load_fallback(std::uint64_t index, const RouteFields& route) {
  return applied(building_->table.put_fallback(index, route));
}

template <class A>
Result<bool> SegmentWriter<A>::step_copy(std::chrono::nanoseconds budget) {
  constexpr std::uint64_t kSlotsPerLook = 64;  // at the clock
  const auto until = std::chrono::steady_clock::now() + budget;
  const std::uint64_t slots = live_->slot_count();
  while (building_->next_slot < slots) {
    const std::uint64_t end = std::min(slots, building_->next_slot + kSlotsPerLook);
    Put worst = Put::inserted;
    for (; building_->next_slot < end; ++building_->next_slot) {
      live_->visit_slot(building_->next_slot, [&](std::string_view id, const RouteFields& route) {
        worst =
            std::max(worst, route.state == State::split
                                ? building_->table.put_split(id, fields_of(live_->find_split(id)))
                                : building_->table.put(id, route));
      });
    }
    if (worst == Put::no_room || worst == Put::chain_too_long) {
      building_.reset();
      add(Counter::rebuild_failures);
      return Status(Code::no_space, worst == Put::no_room
                                        ? "the new generation is too small for the old one"
                                        : "a probe chain is too long under the new seed");
    }
    if (std::chrono::steady_clock::now() >= until) break;
  }
  return building_->next_slot >= slots;
}

template <class A>
void SegmentWriter<A>::switch_generation() {
  const bool is_copy = building_->is_copy;
  ++generation_;
  live_.emplace(building_->table);
  live_half_ = building_->half;
  incarnation_ = building_->incarnation;
  fallback_kind_ = building_->fallback_kind;
  building_.reset();
  memory_.control().root.store(encode_root(generation_, live_half_), kRelease);  // pairs: root
  add(is_copy ? Counter::rebuilds : Counter::reloads);
  store_gauges();
  wake_all();
}

template <class A>
void SegmentWriter<A>::supersede() {
  auto& root = memory_.control().root;
  root.store(root.load(kAcquire) | kSupersededBit, kRelease);  // pairs: root
  wake_all();
}

template <class A>
void SegmentWriter<A>::wake_all() {
  bump_wait_word<A>(memory_.control().version_wait);
  wake(~std::uint64_t{0});
}

template <class A>
void SegmentWriter<A>::wake(std::uint64_t mask) {
  for (std::size_t i = 0; i < kPlacementWaits; ++i) {
    if ((mask >> i & 1) != 0) bump_wait_word<A>(memory_.control().placement_waits[i]);
  }
}

template <class A>
void SegmentWriter<A>::store_gauges() {
  if (!live_) return;
  set(Counter::entries, live_->live());
  set(Counter::vacant_slots, live_->vacant());
}

template <class A>
void SegmentWriter<A>::add(Counter counter, std::uint64_t count) {
  set(counter, get(counter) + count);
}

template <class A>
void SegmentWriter<A>::set(Counter gauge, std::uint64_t value) {
  memory_.control().counters[static_cast<std::size_t>(gauge)].store(value,
                                                                    kRelease);  // pairs: counter
}

template <class A>
std::uint64_t SegmentWriter<A>::get(Counter counter) const {
  return memory_.control().counters[static_cast<std::size_t>(counter)].load(
      kAcquire);  // pairs: counter
}

extern template class SegmentWriter<StdAtomics>;

}  // namespace fingerpost
