// A split tenant as one record among those of its generation: however many parts change at once, a
// reader sees all of them by one store, that of the route word which names the record.
//
//   word 0       kind 63..56 = 2 · number of parts 15..0, 2 to 1,024
//   word 1       epoch: the highest of the split and its parts
//   word 2       read at: the version of the directory whose parts these are. It orders the record
//                against others of the tenant, and against rows from before and after the split
//   word 3 + 2k  part k: state 34..32 · target 31..16 · shard 15..0
//   word 4 + 2k  part k: epoch
//
// Immutable once a route word names it, and its offset is never given twice within a generation. An
// object belongs to part xxh3_64(object) mod parts. So where the number of parts grows to a
// multiple, part k takes its objects from part k mod the number before.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shm/hash.h"
#include "shm/route_word.h"
#include "shm/slot.h"
#include "shm/tenant_id.h"

namespace fingerpost {

inline constexpr std::uint64_t kSplitRecordKind = 2;
inline constexpr std::uint64_t kSplitHeadWords = 3;
inline constexpr std::uint64_t kPartWords = 2;

constexpr std::uint64_t split_record_words(std::uint64_t parts) noexcept {
  return kSplitHeadWords + parts * kPartWords;
}
constexpr bool is_number_of_parts(std::uint64_t parts) noexcept {
  return parts >= 2 && parts <= kPartsMax;
}
// Of a number of parts; of 0, which no split has: 0.
inline unsigned part_of(std::string_view object, unsigned parts) noexcept {
  return parts == 0 ? 0 : static_cast<unsigned>(placement_hash(object) % parts);
}

constexpr std::uint64_t encode_split_head(std::uint64_t parts) noexcept {
  return kSplitRecordKind << 56 | parts;
}
constexpr std::uint64_t encode_part(const RouteFields& route) noexcept {
  return static_cast<std::uint64_t>(route.state) << 32 |
         static_cast<std::uint64_t>(route.target) << 16 | route.shard;
}
constexpr RouteFields decode_part(std::uint64_t word, std::uint64_t epoch,
                                  unsigned parts) noexcept {
  const auto state = static_cast<std::uint8_t>(word >> 32 & 7);
  RouteFields route{
      state <= static_cast<std::uint8_t>(State::unrecognised) ? static_cast<State>(state)
                                                              : State::unrecognised,
      static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16), epoch};
  route.parts = static_cast<std::uint16_t>(parts);
  return route;
}

// The record that `word` names, where it lies. A reader believes what it gives only if the root is
// the same afterwards. Every step is bounded.
template <class A>
class SplitView {
 public:
  SplitView() noexcept = default;
  SplitView(std::uint64_t word, RecordsView<A> records) noexcept
      : records_(records), at_(record_offset(word)) {
    const std::uint64_t head = records.load(at_);
    const std::uint64_t parts = head & 0xFFFF;
    if (has_record(word) && record_kind(head) == kSplitRecordKind && is_number_of_parts(parts)) {
      parts_ = static_cast<unsigned>(parts);
    }
  }

  // 0: the word names no split.
  unsigned parts() const noexcept { return parts_; }
  std::uint64_t epoch() const noexcept { return records_.load(at_ + 1); }
  std::uint64_t read_at() const noexcept { return records_.load(at_ + 2); }
  // Part k below parts(). State none: bytes that make no sense.
  RouteFields part(unsigned k) const noexcept {
    const std::uint64_t at = at_ + kSplitHeadWords + k * kPartWords;
    const std::uint64_t word = records_.load(at);
    return decode_part(word, records_.load(at + 1), parts_);
  }
  // What the tenant as a whole resolves to; state none where parts() is 0.
  RouteFields whole() const noexcept {
    if (parts_ == 0) return {};
    RouteFields route{State::split, kNoShard, kNoShard, epoch()};
    route.parts = static_cast<std::uint16_t>(parts_);
    return route;
  }

 private:
  RecordsView<A> records_;
  std::uint64_t at_ = 0;
  unsigned parts_ = 0;
};

// A split as values.
struct SplitFields {
  std::uint64_t epoch = 0;
  std::uint64_t read_at = 0;
  std::vector<RouteFields> parts;

  bool operator==(const SplitFields&) const = default;
};

template <class A>
SplitFields fields_of(const SplitView<A>& view) {
  SplitFields split{view.epoch(), view.read_at(), {}};
  for (unsigned k = 0; k < view.parts(); ++k) split.parts.push_back(view.part(k));
  return split;
}

}  // namespace fingerpost
