// The whole of a lookup: tenant's own entry, else the fallback rule, at one moment and in one
// generation.
//
// Wait-free: at most kPassesMax passes, each with a bounded number of steps, whatever the writer
// does, including dying at any store. No system call, no clock, nothing stored to shared memory.
// Any number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "shm/hash.h"
#include "shm/route_fields.h"
#include "shm/route_word.h"
#include "shm/split_record.h"
#include "shm/table_view.h"

namespace fingerpost {

// A generation switch every 10 ms disturbs a lookup a few hundred times a second; eight times in a
// row is a writer gone mad, or bytes that make no sense.
inline constexpr int kPassesMax = 8;

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
  int passes = 0;
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

// One pass over one generation; `stable` is false if the fallback word changed during the probe.
struct PassResult {
  bool stable = false;
  RouteSource source = RouteSource::none;
  std::uint64_t word = 0;
};

template <class A>
[[gnu::always_inline]] inline PassResult look_once(const Generation<A, false>& table,
                                                   std::string_view id, const PackedId<A>& packed,
                                                   Home home) noexcept {
  // Two places, one answer: the fallback word is the same before and after the probe, so at the
  // moment of the probe "no own entry" and "the rule says this" held together.
  const std::uint64_t count = table.geometry.fallback_count;
  const typename A::Word* rule = count == 0 ? nullptr : &table.fallback[placement_hash(id) % count];
  const std::uint64_t before =
      rule == nullptr ? kNoRoute : rule->load(kAcquire);  // pairs: fallback
  const Found own = find_in_table(table, packed, home);
  if (own.route != 0) return {true, RouteSource::override_entry, own.route};
  if (rule == nullptr) return {true, RouteSource::none, kNoRoute};
  const std::uint64_t after = rule->load(kAcquire);  // pairs: fallback
  if (before != after) return {};
  const auto kind =
      static_cast<FallbackKind>(table.header->fallback_kind.load(kAcquire));  // pairs: geometry
  return {true, kind == FallbackKind::hash ? RouteSource::hash : RouteSource::bucket, after};
}

inline Answer answer_of(const RouteFields& route) noexcept {
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

// What a pass begins with: the root, and the generation it names.
template <class A>
struct PassStart {
  std::uint64_t root = 0;
  bool fits = false;  // whether the geometry fits what is allocated
  Generation<A, false> table;

  Home home(std::string_view id) const noexcept {
    return home_of(index_hash(id, table.seed), table.geometry.group_count);
  }
};

template <class A, class Memory>
[[gnu::always_inline]] inline void begin_pass(const Memory& memory, PassStart<A>& start) noexcept {
  const std::uint64_t root = memory.root().load(kAcquire);  // pairs: root
  start.root = root;
  start.fits = memory.generation(root_half(root), start.table);
}

// The rest of the pass, for one id whose home lies in that generation. false: it was disturbed, and
// `found` means nothing.
template <class A, class Memory, class Follow>
[[gnu::always_inline]] inline bool finish_pass(const Memory& memory, const PassStart<A>& start,
                                               std::string_view id, Home home, Follow&& follow,
                                               Resolution& found) noexcept {
  const std::uint64_t root = start.root;
  const Generation<A, false>& table = start.table;
  bool stable = false;
  if (start.fits) {
    const PassResult seen = look_once(table, id, PackedId<A>(id), home);
    stable = seen.stable;
    if (stable && seen.word != 0) {
      found.route = has_record(seen.word) ? follow(seen.word, table.records_view())
                                          : decode_inline(seen.word);
      stable = found.route.state != State::none;  // else bytes that make no sense
    }
    found.source = seen.source;
  }
  // On every exit, the absent one included; nothing of the generation is read after it.
  if (memory.root().load(kAcquire) != root || !stable) return false;  // pairs: root
  found.answer = answer_of(found.route);
  if (found.answer == Answer::unknown) found.source = RouteSource::none;
  found.root = root;
  return true;
}

// `memory` gives `root()`, the root word, and `generation(half, out)`: points `out` at the
// generation of that half, false if its geometry does not fit what is allocated. `id` has 1 to 255
// bytes; nothing else is asked of it here. `follow(word, records)` is asked for the route of a word
// that names a record.
template <class A, class Memory, class Follow>
[[gnu::always_inline]] inline Resolution resolve_following(const Memory& memory,
                                                           std::string_view id, Follow&& follow,
                                                           int pass = 1) noexcept {
  for (; pass <= kPassesMax; ++pass) {
    PassStart<A> start;
    begin_pass(memory, start);
    Home home{};
    if (start.fits) {
      home = start.home(id);
      prefetch_home(start.table, home);
    }
    Resolution found;
    if (!finish_pass(memory, start, id, home, follow, found)) continue;
    found.passes = pass;
    return found;
  }
  Resolution undetermined;
  undetermined.passes = kPassesMax;
  return undetermined;
}

// The tenant as a whole. Of a split one: that it is split, and into how many parts.
template <class A, class Memory>
[[gnu::always_inline]] inline Resolution resolve(const Memory& memory,
                                                 std::string_view id) noexcept {
  return resolve_following<A>(memory, id, [](std::uint64_t word, RecordsView<A> records) {
    return load_record<A>(word, records);
  });
}

// Several tenants, at most kBatchMax, whose memory accesses overlap: all groups and home slots are
// asked for first, then the slots whose fingerprints match elsewhere; only then is any id compared.
// All have the same first pass, each its own end of it; one that was disturbed goes on alone.
// `give(i, resolution)` is called for each in turn. Ids as for resolve().
inline constexpr std::size_t kBatchMax = 64;

template <class A, class Memory, class Give>
[[gnu::always_inline]] inline void resolve_batch(const Memory& memory,
                                                 std::span<const std::string_view> ids,
                                                 Give&& give) noexcept {
  const auto follow = [](std::uint64_t word, RecordsView<A> records) {
    return load_record<A>(word, records);
  };
  std::array<Home, kBatchMax> homes;
  PassStart<A> start;
  begin_pass(memory, start);
  if (start.fits) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      homes[i] = start.home(ids[i]);
      prefetch_home(start.table, homes[i]);
    }
    for (std::size_t i = 0; i < ids.size(); ++i) prefetch_match(start.table, homes[i]);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Resolution found;
    if (finish_pass(memory, start, ids[i], homes[i], follow, found)) {
      found.passes = 1;
    } else {
      found = resolve_following<A>(memory, ids[i], follow, 2);
    }
    give(i, found);
  }
}

// Of a split tenant the part that `object` belongs to; of any other tenant the same as without it.
template <class A, class Memory>
Resolution resolve(const Memory& memory, std::string_view id, std::string_view object) noexcept {
  Resolution found =
      resolve_following<A>(memory, id, [object](std::uint64_t word, RecordsView<A> records) {
        return load_part<A>(word, records, object);
      });
  if (found.route.parts != 0) found.source = RouteSource::part;
  return found;
}

// The tenant as a whole, and before it `visit(k, route)` for each part of a split one, all out of
// one record. Where the lookup was disturbed the parts are visited again: those of the last time
// count, and none if the answer is not `split`.
template <class A, class Memory, class Visit>
Resolution resolve_all(const Memory& memory, std::string_view id, Visit&& visit) noexcept {
  return resolve_following<A>(memory, id, [&visit](std::uint64_t word, RecordsView<A> records) {
    return load_parts<A>(word, records, visit);
  });
}

}  // namespace fingerpost
