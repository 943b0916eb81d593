// One pass of a lookup: tenant's own entry, else the fallback rule, at one moment and in one
// generation.
//
// A bounded number of steps, whatever the writer does, including dying at any store. No system
// call, no clock, nothing stored to shared memory. Any number of threads.
#pragma once

#include <cstdint>
#include <string_view>

#include "shm/hash.h"
#include "shm/route_fields.h"
#include "shm/route_word.h"
#include "shm/split_record.h"
#include "shm/table_view.h"

namespace fingerpost {

enum class Answer : std::uint8_t {
  found,
  unknown,
  deleted,
  split,         // a split tenant has no single shard
  refused,       // not an id
  undetermined,  // disturbed kPassesMax times: treat it like a miss, never as a guess
};

struct Resolution {
  Answer answer = Answer::undetermined;
  RouteSource source = RouteSource::none;
  RouteFields route;
  std::uint64_t root = 0;  // the generation that answered, and whether the segment is superseded
  int passes = 1;
};

// The route that `word` stands for, following it to its record. The record is immutable and its
// offset unique within the generation: believed only if the root is the same afterwards. state
// none: bytes that make no sense.
template <class A>
[[gnu::noinline]] RouteFields load_record(std::uint64_t word, RecordsView<A> records) noexcept {
  const std::uint64_t at = record_offset(word);
  const std::uint64_t head = records.load(at);
  if (record_kind(head) == kSplitRecordKind) return SplitView<A>(word, records).whole();
  const std::uint64_t epoch = records.load(at + 1);
  return record_kind(head) == kRouteRecordKind ? decode_record(word, head, epoch) : RouteFields{};
}

// The same of the part that `object` belongs to, where the record is a split.
template <class A>
[[gnu::noinline]] RouteFields load_part(std::uint64_t word, RecordsView<A> records,
                                        std::string_view object) noexcept {
  const SplitView<A> split(word, records);
  if (split.parts() == 0) return load_record<A>(word, records);
  return split.part(part_of(object, split.parts()));
}

// The same of the tenant as a whole; of a split, `visit(k, route)` is called for each part.
template <class A, class Visit>
RouteFields load_parts(std::uint64_t word, RecordsView<A> records, Visit&& visit) noexcept {
  const SplitView<A> split(word, records);
  for (unsigned k = 0; k < split.parts(); ++k) {
    const RouteFields route = split.part(k);
    if (route.state == State::none) return {};
    visit(k, route);
  }
  return load_record<A>(word, records);
}

template <class A>
[[gnu::always_inline]] inline RouteFields load_route(std::uint64_t word,
                                                     RecordsView<A> records) noexcept {
  return has_record(word) ? load_record<A>(word, records) : decode_inline(word);
}

// What a lookup asks of a word that names a record: the tenant as a whole, the part of one object,
// or all parts.
template <class A>
struct WholeTenant {
  RouteFields operator()(std::uint64_t word, RecordsView<A> records) const noexcept {
    return load_record<A>(word, records);
  }
};
template <class A>
struct PartOfObject {
  std::string_view object;
  RouteFields operator()(std::uint64_t word, RecordsView<A> records) const noexcept {
    return load_part<A>(word, records, object);
  }
};
template <class A, class Visit>
struct EachPart {
  Visit& visit;
  RouteFields operator()(std::uint64_t word, RecordsView<A> records) const noexcept {
    return load_parts<A>(word, records, visit);
  }
};

// `hash` mod `count`, without a division where there is a power of two of them.
constexpr std::uint64_t fallback_index(std::uint64_t hash, std::uint64_t count) noexcept {
  return (count & (count - 1)) == 0 ? hash & (count - 1) : hash % count;
}

// One pass over one generation; `stable` is false if the fallback word changed during the probe.
struct PassResult {
  bool stable = false;
  RouteSource source = RouteSource::none;
  std::uint64_t word = 0;
};

template <class A>
[[gnu::always_inline]] inline RouteSource source_of_fallback(
    const Generation<A, false>& table) noexcept {
  const auto kind =
      static_cast<FallbackKind>(table.header->fallback_kind.load(kAcquire));  // pairs: geometry
  return kind == FallbackKind::hash ? RouteSource::hash : RouteSource::bucket;
}

template <class A>
[[gnu::always_inline]] inline PassResult look_once(const Generation<A, false>& table,
                                                   std::string_view id, const PackedId<A>& packed,
                                                   Home home) noexcept {
  // Two places, one answer: the fallback word is the same before and after the probe, so at the
  // moment of the probe "no own entry" and "the rule says this" held together.
  const std::uint64_t count = table.geometry.fallback_count;
  const typename A::Word* rule =
      count == 0 ? nullptr : &table.fallback[fallback_index(placement_hash(id), count)];
  const std::uint64_t before =
      rule == nullptr ? kNoRoute : rule->load(kAcquire);  // pairs: fallback
  const Found own = find_in_table(table, packed, home);
  if (own.route != 0) return {true, RouteSource::override_entry, own.route};
  if (rule == nullptr) return {true, RouteSource::none, kNoRoute};
  const std::uint64_t after = rule->load(kAcquire);  // pairs: fallback
  if (before != after) return {};
  return {true, source_of_fallback(table), after};
}

inline Answer answer_of(const RouteFields& route) noexcept {
  if (route.state >= State::active && route.state <= State::frozen) [[likely]]
    return Answer::found;
  switch (route.state) {
    case State::none:
      return Answer::unknown;
    case State::deleted:
      return Answer::deleted;
    case State::split:
      return Answer::split;
    default:
      return Answer::found;
  }
}

// What a pass begins with: the root, the half that it names, and what hashing needs. The geometry
// comes after the hash, since a call between them would drive its numbers out of the registers.
template <class A, class Half>
struct PassStart {
  std::uint64_t root = 0;
  Half half;
  std::uint64_t seed = 0;
  Generation<A, false> table;

  Home home(std::uint64_t hash) const noexcept { return home_of(hash, table.geometry.group_count); }
};

template <class A, class Memory>
[[gnu::always_inline]] inline auto begin_pass(const Memory& memory) noexcept {
  PassStart<A, decltype(memory.half_view(0U))> start;
  start.root = memory.root().load(kAcquire);  // pairs: root
  start.half = memory.half_view(root_half(start.root));
  if (start.half) [[likely]]
    start.seed = start.half.seed();
  return start;
}

// One whole pass. `memory` gives `root()`, the root word, and `half_view(half)`, with what HalfView
// has (shm/generation.h). `id` has 1 to 255 bytes; nothing else is asked of it here. `follow(word,
// records)` is asked for the route of a word that names a record. false: it was disturbed, and
// `found` means nothing.
template <class A, class Memory, class Follow>
bool resolve_pass(const Memory& memory, std::string_view id, Follow&& follow,
                  Resolution& found) noexcept {
  auto start = begin_pass<A>(memory);
  PassResult seen;
  if (start.half && start.half.generation(start.table)) {
    const Generation<A, false>& table = start.table;
    const Home home = start.home(index_hash(id, start.seed));
    prefetch_home(table, home);
    seen = look_once(table, id, PackedId<A>(id), home);
    if (has_record(seen.word)) {
      found.route = follow(seen.word, table.records_view());
    } else {
      found.route = decode_inline(seen.word);
    }
  }
  // On every exit, the absent one included; nothing of the generation is read after it.
  if (memory.root().load(kAcquire) != start.root || !seen.stable) return false;  // pairs: root
  found.answer = answer_of(found.route);
  found.source = seen.source;
  if (found.answer == Answer::unknown) {
    if (seen.word != kNoRoute) return false;  // bytes that make no sense
    found.source = RouteSource::none;
    found.route = {};
  }
  if (found.route.parts != 0 && found.answer != Answer::split) found.source = RouteSource::part;
  found.root = start.root;
  return true;
}

}  // namespace fingerpost
