// The writer's side of one generation: put, remove, adopt.
//
// One thread of one process. Every store is a release in an order such that a reader that sees any
// subset of them (closed under that order) finds each id with its old or its new route.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "shm/hash.h"
#include "shm/resolve_pass.h"
#include "shm/slot_entry.h"
#include "shm/table_view.h"
#include "shm/tenant_id.h"

namespace fingerpost {

enum class Put : std::uint8_t {
  inserted,
  updated,
  not_newer,      // the entry's epoch is the same or higher: nothing stored
  no_room,        // slots or records are used up: a rebuild makes room
  chain_too_long  // no free slot within kProbeGroupsMax groups: another seed may help
};

// Which share of the slots may be live or vacant before a rebuild is due, and at which share tables
// are made.
inline constexpr double kRebuildLoad = 0.87;
inline constexpr double kGrowLoad = 0.80;  // live alone above this: the next generation is larger
inline constexpr double kLoadTarget = 0.77;

struct TableSize {
  std::uint64_t groups = 1;
  std::uint64_t records_words = 0;
};

// Groups for `entries` at kLoadTarget, at least one.
constexpr std::uint64_t groups_for(std::uint64_t entries) {
  const auto slots = static_cast<std::uint64_t>(static_cast<double>(entries) / kLoadTarget) + 1;
  return (slots + kGroupSlots - 1) / kGroupSlots;
}

template <class A>
class TableWriter {
 public:
  // Over a generation that `initialise` or an earlier writer has made.
  explicit TableWriter(const Generation<A, true>& table) noexcept : table_(table) {
    records_end_ = table_.header->records_end.load(kAcquire);
    probe_limit_ = table_.header->probe_limit.load(kAcquire);
  }

  // Makes the half at `base` an empty generation. No reader is in it but those whose root has moved
  // on.
  template <class Byte>
  static TableWriter initialise(Byte* base, const Geometry& geometry, FallbackKind kind,
                                std::uint64_t seed, std::uint64_t generation,
                                std::uint64_t incarnation) noexcept {
    Generation<A, true> table{.geometry = geometry, .seed = seed};
    place_generation(base, table);
    return initialise(table, kind, generation, incarnation);
  }
  // The same over parts that lie where `table` says.
  static TableWriter initialise(const Generation<A, true>& table, FallbackKind kind,
                                std::uint64_t generation, std::uint64_t incarnation) noexcept;

  // Puts `route` for `id` if its epoch is newer than the entry's. `id` is a valid tenant id.
  Put put(std::string_view id, const RouteFields& route) noexcept;

  // The same for a tenant in parts, of which there are 2 to 1,024. It is newer than a row whose
  // epoch is not above its read_at, than a split read at an earlier version, and than one read at
  // the same version of which less could be applied: whose epochs have a lower sum.
  Put put_split(std::string_view id, const SplitFields& split) noexcept;

  // The same for fallback word `index`, which must be below the count.
  Put put_fallback(std::uint64_t index, const RouteFields& route) noexcept;

  // Removes the entry of `id` if its epoch, or of a split the version it was read at, is not above
  // `version`. false: nothing to remove.
  bool remove(std::string_view id, std::uint64_t version) noexcept;

  // The slot that holds `id`; kNoSlot if none does.
  std::uint64_t slot_of(std::string_view id) const noexcept {
    return find_in_table(readable(), PackedId<A>(id), home(id)).slot;
  }
  // Fetches the lines that a put of `id` will look at first.
  void expect(std::string_view id) const noexcept { prefetch_home(table_, home(id)); }
  // What the table says of `id`; state none if nothing.
  RouteFields find(std::string_view id) const noexcept;
  // The parts of `id`; parts() 0 if it is not split.
  SplitView<A> find_split(std::string_view id) const noexcept;
  RouteFields fallback(std::uint64_t index) const noexcept {
    return load(table_.fallback[index].load(kAcquire));
  }

  // Calls visit(id, route) for the live entry of slot `slot`, if there is one.
  template <class Visit>
  void visit_slot(std::uint64_t slot, Visit&& visit) const;

  // After a writer died: counts what is live, frees slots left odd, recomputes the fingerprints of
  // even slots from their ids, and frees what is not an entry. Returns how many slots it had to
  // mend.
  std::uint64_t adopt() noexcept;

  std::uint64_t live() const noexcept { return live_; }
  std::uint64_t vacant() const noexcept { return vacant_; }
  std::uint64_t slot_count() const noexcept { return table_.geometry.slot_count(); }
  std::uint64_t records_end() const noexcept { return records_end_; }
  // Words of records that live entries use; the rest up to records_end is garbage until the next
  // generation.
  std::uint64_t records_live() const noexcept { return records_live_; }
  const Geometry& geometry() const noexcept { return table_.geometry; }
  const Generation<A, true>& generation() const noexcept { return table_; }

  bool rebuild_due() const noexcept {
    return static_cast<double>(live_ + vacant_) > kRebuildLoad * static_cast<double>(slot_count());
  }

 private:
  Generation<A, false> readable() const noexcept {
    return {table_.geometry, table_.seed,     table_.header, table_.groups,
            table_.slots,    table_.fallback, table_.records};
  }
  std::uint64_t record_words(std::uint64_t word) const noexcept {
    if (!has_record(word)) return 0;
    const unsigned parts = SplitView<A>(word, table_.records_view()).parts();
    return parts == 0 ? kRouteRecordWords : split_record_words(parts);
  }
  // The version that decides whether another change of the entry is newer.
  std::uint64_t order_of(std::uint64_t word) const noexcept {
    const RouteFields route = load(word);
    return route.state == State::split ? SplitView<A>(word, table_.records_view()).read_at()
                                       : route.epoch;
  }
  bool is_newer(const SplitFields& split, std::uint64_t word) const noexcept;
  // Stores for `id` the word that `make()` gives, unless `is_newer(word)` says that the entry's is
  // not older.
  template <class IsNewer, class Make>
  Put put_entry(std::string_view id, IsNewer&& is_newer, Make&& make) noexcept;
  RouteFields load(std::uint64_t word) const noexcept {
    return load_route(word, table_.records_view());
  }
  Home home(std::string_view id) const noexcept {
    return home_of(index_hash(id, table_.seed), table_.geometry.group_count);
  }
  typename A::Word& fingerprint_word(std::uint64_t slot) const noexcept {
    Group<A>& group = table_.groups[slot / kGroupSlots];
    return slot % kGroupSlots < 8 ? group.low : group.high;
  }
  std::uint8_t fingerprint(std::uint64_t slot) const noexcept {
    return static_cast<std::uint8_t>(fingerprint_word(slot).load(kAcquire) >> (slot % 8 * 8));
  }
  void set_fingerprint(std::uint64_t slot, std::uint8_t value) noexcept {
    typename A::Word& word = fingerprint_word(slot);
    const auto shift = slot % 8 * 8;
    const std::uint64_t others = word.load(kAcquire) & ~(std::uint64_t{0xFF} << shift);
    word.store(others | std::uint64_t{value} << shift, kRelease);  // pairs: fingerprint
  }

  struct Place {
    std::uint64_t slot = kNoSlot;
    std::uint64_t distance = 0;  // groups from home
    bool unused = false;
  };
  Place free_place(Home home) const noexcept;
  // Takes `count` words of records; nullopt if there are not so many left.
  std::optional<std::uint64_t> take_records(std::uint64_t count) noexcept;
  // The word for `route`, with a record where it needs one; nullopt if there is no room for that.
  std::optional<std::uint64_t> make_word(const RouteFields& route) noexcept;
  std::optional<std::uint64_t> make_word(const SplitFields& split) noexcept;

  Generation<A, true> table_;
  std::uint64_t records_end_ = 0;
  std::uint64_t probe_limit_ = 1;
  std::uint64_t live_ = 0;
  std::uint64_t vacant_ = 0;
  std::uint64_t records_live_ = 0;
};

template <class A>
TableWriter<A> TableWriter<A>::initialise(const Generation<A, true>& table, FallbackKind kind,
                                          std::uint64_t generation,
                                          std::uint64_t incarnation) noexcept {
  const Geometry& geometry = table.geometry;
  TableHeader<A>& header = *table.header;
  header.generation.store(generation, kRelease);                           // pairs: geometry
  header.incarnation.store(incarnation, kRelease);                         // pairs: geometry
  header.seed.store(table.seed, kRelease);                                 // pairs: geometry
  header.group_count.store(geometry.group_count, kRelease);                // pairs: geometry
  header.probe_limit.store(1, kRelease);                                   // pairs: probe-limit
  header.fallback_kind.store(static_cast<std::uint64_t>(kind), kRelease);  // pairs: geometry
  header.fallback_count.store(geometry.fallback_count, kRelease);          // pairs: geometry
  header.records_words.store(geometry.records_words, kRelease);            // pairs: geometry
  header.records_end.store(0, kRelease);                                   // pairs: records-end
  for (std::uint64_t i = 0; i < geometry.group_count; ++i) {
    table.groups[i].low.store(0, kRelease);   // pairs: fingerprint
    table.groups[i].high.store(0, kRelease);  // pairs: fingerprint
  }
  for (std::uint64_t i = 0; i < geometry.fallback_count; ++i) {
    table.fallback[i].store(kNoRoute, kRelease);  // pairs: fallback
  }
  return TableWriter(table);
}

template <class A>
std::optional<std::uint64_t> TableWriter<A>::take_records(std::uint64_t count) noexcept {
  if (table_.geometry.records_words - records_end_ < count) return std::nullopt;
  const std::uint64_t at = records_end_;
  records_end_ += count;
  table_.header->records_end.store(records_end_, kRelease);  // pairs: records-end
  return at;
}

template <class A>
std::optional<std::uint64_t> TableWriter<A>::make_word(const RouteFields& route) noexcept {
  if (fits_inline(route)) return encode_inline(route);
  const auto at = take_records(kRouteRecordWords);
  if (!at) return std::nullopt;
  table_.records[*at].store(encode_record_head(route), kRelease);  // pairs: record
  table_.records[*at + 1].store(route.epoch, kRelease);            // pairs: record
  return encode_record_reference(route.state, *at);
}

template <class A>
std::optional<std::uint64_t> TableWriter<A>::make_word(const SplitFields& split) noexcept {
  const auto at = take_records(split_record_words(split.parts.size()));
  if (!at) return std::nullopt;
  std::uint64_t next = *at;
  const auto store = [&](std::uint64_t word) {
    table_.records[next++].store(word, kRelease);  // pairs: record
  };
  store(encode_split_head(split.parts.size()));
  store(split.epoch);
  store(split.read_at);
  for (const RouteFields& part : split.parts) {
    store(encode_part(part));
    store(part.epoch);
  }
  return encode_record_reference(State::split, *at);
}

template <class A>
bool TableWriter<A>::is_newer(const SplitFields& split, std::uint64_t word) const noexcept {
  const SplitView<A> there(word, table_.records_view());
  if (there.parts() == 0) return load(word).epoch <= split.read_at;
  if (there.read_at() != split.read_at) return there.read_at() < split.read_at;
  std::uint64_t ahead = 0;  // modulo 2^64
  for (const RouteFields& part : split.parts) ahead += part.epoch;
  for (unsigned k = 0; k < there.parts(); ++k) ahead -= there.part(k).epoch;
  return ahead != 0 && ahead >> 63 == 0;
}

template <class A>
typename TableWriter<A>::Place TableWriter<A>::free_place(Home home) const noexcept {
  const std::uint64_t limit = std::min(kProbeGroupsMax, table_.geometry.group_count);
  std::uint64_t group = home.group;
  for (std::uint64_t distance = 0; distance < limit; ++distance) {
    const std::uint64_t low = table_.groups[group].low.load(kAcquire);
    const std::uint64_t high = table_.groups[group].high.load(kAcquire);
    const std::uint32_t empty = scan_vector(low, high, kFingerprintEmpty);
    std::uint32_t free = empty | scan_vector(low, high, kFingerprintVacant);
    if (free != 0) {
      const bool at_home = distance == 0 && (free >> home.position & 1) != 0;
      const unsigned position = at_home ? home.position : pop_lowest(free);
      return {group * kGroupSlots + position, distance, (empty >> position & 1) != 0};
    }
    group = next_group(group, table_.geometry.group_count);
  }
  return {};
}

template <class A>
Put TableWriter<A>::put(std::string_view id, const RouteFields& route) noexcept {
  return put_entry(
      id, [&](std::uint64_t word) { return order_of(word) < route.epoch; },
      [&] { return make_word(route); });
}

template <class A>
Put TableWriter<A>::put_split(std::string_view id, const SplitFields& split) noexcept {
  return put_entry(
      id, [&](std::uint64_t word) { return is_newer(split, word); },
      [&] { return make_word(split); });
}

template <class A>
template <class IsNewer, class Make>
Put TableWriter<A>::put_entry(std::string_view id, IsNewer&& is_newer, Make&& make) noexcept {
  const PackedId<A> packed(id);
  const Home at = home(id);
  const Found found = find_in_table(readable(), packed, at);
  if (found.route != 0) {
    if (!is_newer(found.route)) return Put::not_newer;
    const auto word = make();
    if (!word) return Put::no_room;
    table_.slots[found.slot].route.store(*word, kRelease);  // pairs: slot-route
    records_live_ += record_words(*word);
    records_live_ -= record_words(found.route);
    return Put::updated;
  }
  const Place place = free_place(at);
  if (place.slot == kNoSlot) {
    return live_ + vacant_ >= slot_count() ? Put::no_room : Put::chain_too_long;
  }
  const std::uint64_t tail_words = packed.tail_words();
  std::uint64_t tail = 0;
  if (tail_words != 0) {
    const auto taken = take_records(tail_words);
    if (!taken) return Put::no_room;
    tail = *taken;
    for (std::uint64_t i = 0; i < tail_words; ++i) {
      table_.records[tail + i].store(packed.tail_word(i), kRelease);  // pairs: record
    }
  }
  const auto word = make();
  if (!word) return Put::no_room;
  rewrite_slot(table_.slots[place.slot], packed, tail, *word, place.unused, [&] {
    if (place.distance >= probe_limit_) {  // before the fingerprint of the entry that needs it
      probe_limit_ = place.distance + 1;
      table_.header->probe_limit.store(probe_limit_, kRelease);  // pairs: probe-limit
    }
    set_fingerprint(place.slot, at.fingerprint);
  });
  ++live_;
  if (!place.unused) --vacant_;
  records_live_ += tail_words + record_words(*word);
  return Put::inserted;
}

template <class A>
Put TableWriter<A>::put_fallback(std::uint64_t index, const RouteFields& route) noexcept {
  typename A::Word& rule = table_.fallback[index];
  const std::uint64_t old = rule.load(kAcquire);
  if (old != kNoRoute && load(old).epoch >= route.epoch) return Put::not_newer;
  const auto word = make_word(route);
  if (!word) return Put::no_room;
  rule.store(*word, kRelease);  // pairs: fallback
  records_live_ += record_words(*word);
  records_live_ -= record_words(old);
  return old == kNoRoute ? Put::inserted : Put::updated;
}

template <class A>
bool TableWriter<A>::remove(std::string_view id, std::uint64_t version) noexcept {
  const Found found = find_in_table(readable(), PackedId<A>(id), home(id));
  if (found.route == 0 || order_of(found.route) > version) return false;
  set_fingerprint(found.slot, kFingerprintVacant);
  --live_;
  ++vacant_;
  records_live_ -= IdShape<A>::tail_words(id.size()) + record_words(found.route);
  return true;
}

template <class A>
RouteFields TableWriter<A>::find(std::string_view id) const noexcept {
  const Found found = find_in_table(readable(), PackedId<A>(id), home(id));
  return found.route == 0 ? RouteFields{} : load(found.route);
}

template <class A>
SplitView<A> TableWriter<A>::find_split(std::string_view id) const noexcept {
  const Found found = find_in_table(readable(), PackedId<A>(id), home(id));
  return {found.route, table_.records_view()};
}

template <class A>
template <class Visit>
void TableWriter<A>::visit_slot(std::uint64_t slot, Visit&& visit) const {
  if (!is_live(fingerprint(slot))) return;
  SlotEntry entry;
  if (read_slot_entry(table_.slots[slot], table_.records_view(), entry)) {
    visit(entry.id(), load(entry.route));
  }
}

template <class A>
std::uint64_t TableWriter<A>::adopt() noexcept {
  std::uint64_t mended = 0;
  live_ = 0;
  vacant_ = 0;
  records_live_ = 0;
  for (std::uint64_t i = 0; i < geometry().fallback_count; ++i) {
    records_live_ += record_words(table_.fallback[i].load(kAcquire));
  }
  SlotEntry entry;
  for (std::uint64_t slot = 0; slot < slot_count(); ++slot) {
    const std::uint8_t seen = fingerprint(slot);
    if (seen == kFingerprintEmpty) continue;  // whatever lies in it was never shown
    const bool odd = is_odd(slot_sequence(table_.slots[slot].header.load(kAcquire)));
    const bool is_entry = is_live(seen) &&
                          read_slot_entry(table_.slots[slot], table_.records_view(), entry) &&
                          !why_not_tenant_id(entry.id()) && load(entry.route).state != State::none;
    if (is_entry) {
      ++live_;
      records_live_ += IdShape<A>::tail_words(entry.length) + record_words(entry.route);
      const std::uint8_t right = home(entry.id()).fingerprint;
      if (right != seen) {
        set_fingerprint(slot, right);
        ++mended;
      }
      continue;
    }
    ++vacant_;
    if (seen != kFingerprintVacant) set_fingerprint(slot, kFingerprintVacant);
    if (odd) free_slot(table_.slots[slot]);
    if (odd || seen != kFingerprintVacant) ++mended;
  }
  return mended;
}

}  // namespace fingerpost
