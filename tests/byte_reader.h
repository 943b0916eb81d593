// Reads a segment's bytes at rest as somebody would with the layout's page and a hex dump: every
// offset spelled out, no probe, no code of the table's. Independent of what it judges.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "shm/counters.h"
#include "shm/hash.h"
#include "shm/tenant_id.h"
#include "tests/route_truth.h"

namespace fingerpost {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes)
      : bytes_(bytes), root_(word(kControl)), half_(kHalf[root_ & 1]) {
    groups_ = word(half_ + 8);
    slots_at_ = half_ + 4096 + (groups_ * 16 + 63) / 64 * 64;
    rules_ = word(half_ + 32);
    rules_at_ = slots_at_ + groups_ * 16 * 64;
    records_at_ = rules_at_ + (rules_ * 8 + 63) / 64 * 64;
  }

  std::uint64_t root() const { return root_; }
  std::uint64_t records_end() const { return word(half_ + 80); }
  std::uint32_t version_wait() const { return half_word(kControl + 256); }
  std::uint32_t placement_wait(std::size_t i) const { return half_word(kControl + 320 + 4 * i); }

  Position position() const {
    const std::size_t cell = kControl + 128;
    const std::size_t copy = cell + 8 + (word(cell) & 1) * 32;
    return {word(copy), word(copy + 8), word(copy + 16), word(copy + 24)};
  }

  Seen at(const std::string& question) const {
    const std::string id = tenant_of(question);
    for (std::uint64_t slot = 0; slot < groups_ * 16; ++slot) {
      if (fingerprint(slot) >= 0x80 && id_of(slot) == id) {
        const std::uint64_t route = word(slot_at(slot));
        if (const auto split = split_of(route)) return told_of_split(*split, question);
        return told(RouteSource::override_entry, route_of(route));
      }
    }
    if (rules_ == 0) return {};
    return told(word(half_ + 24) == 2 ? RouteSource::hash : RouteSource::bucket,
                route_of(word(rules_at_ + placement_hash(id) % rules_ * 8)));
  }

  // The id in a slot whose header is even; "" if the header is odd, or names no id.
  std::string id_of(std::uint64_t slot) const {
    const std::uint64_t header = word(slot_at(slot) + 8);
    const std::size_t length = header >> 8 & 0xFF;
    if ((header >> 16 & 1) != 0) return {};
    std::string id(length, '\0');
    const std::size_t here = length > 48 ? 40 : length;
    std::memcpy(id.data(), bytes_.data() + slot_at(slot) + 16, here);
    if (length > 48) {
      const std::size_t tail = records_at_ + word(slot_at(slot) + 56) * 8;
      std::memcpy(id.data() + 40, bytes_.data() + tail, length - 40);
    }
    return id;
  }

  std::uint64_t slot_count() const { return groups_ * 16; }
  std::uint8_t fingerprint(std::uint64_t slot) const {
    return static_cast<std::uint8_t>(bytes_[half_ + 4096 + slot]);
  }
  std::uint64_t sequence(std::uint64_t slot) const { return word(slot_at(slot) + 8) >> 16; }
  // Whether route and id words are all zero.
  bool is_blank(std::uint64_t slot) const {
    for (std::size_t at = 0; at < 64; at += 8) {
      if (at != 8 && word(slot_at(slot) + at) != 0) return false;
    }
    return true;
  }

  // What must not be so in a table that a writer has taken over, or whose batch is complete.
  std::vector<std::string> problems() const {
    std::vector<std::string> found;
    const std::uint64_t seed = word(half_);
    std::map<std::string, std::uint64_t> where;
    std::uint64_t live = 0;
    std::uint64_t vacant = 0;
    for (std::uint64_t slot = 0; slot < slot_count(); ++slot) {
      const std::uint8_t seen = fingerprint(slot);
      const std::string name = "slot " + std::to_string(slot);
      if (seen == 0) continue;
      if ((sequence(slot) & 1) != 0) found.push_back(name + " is odd");
      if (seen == 1) {
        ++vacant;
        continue;
      }
      ++live;
      const std::string id = id_of(slot);
      if (why_not_tenant_id(id)) found.push_back(name + " holds no id");
      if (!where.emplace(id, slot).second) found.push_back(name + " holds '" + id + "' again");
      const std::uint64_t hash = index_hash(id, seed);
      if (seen != (0x80 | (hash >> 4 & 0x7F))) found.push_back(name + " has a wrong fingerprint");
      if (!is_reachable(slot, home_of(hash, groups_).group)) {
        found.push_back(name + " lies behind the end of its probe");
      }
      const std::uint64_t route = word(slot_at(slot));
      const auto split = split_of(route);
      if (!split && route_of(route).state == State::none) found.push_back(name + " has no route");
      const std::size_t words = split ? 3 + 2 * split->parts.size() : 2;
      if (route >> 63 != 0 && (route & kOffsetBits) + words > records_end()) {
        found.push_back(name + " names a record behind the end of the records");
      }
      if (id.size() > 48 && word(slot_at(slot) + 56) + (id.size() - 33) / 8 > records_end()) {
        found.push_back(name + " has its tail behind the end of the records");
      }
    }
    check_gauge(Counter::entries, live, found);
    check_gauge(Counter::vacant_slots, vacant, found);
    return found;
  }

 private:
  static constexpr std::size_t kControl = 4096;
  static constexpr std::size_t kHalf[2] = {3 * 4096, 15 * 4096};
  static constexpr std::uint64_t kOffsetBits = (std::uint64_t{1} << 44) - 1;

  std::uint64_t word(std::size_t at) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  std::uint32_t half_word(std::size_t at) const { return static_cast<std::uint32_t>(word(at)); }
  std::size_t slot_at(std::uint64_t slot) const { return slots_at_ + slot * 64; }

  RouteFields route_of(std::uint64_t route) const {
    const auto state = static_cast<State>(route >> 60 & 7);
    if (route >> 63 == 0) {
      return {state, static_cast<std::uint16_t>(route >> 44), kNoShard, route & kOffsetBits};
    }
    const std::size_t record = records_at_ + (route & kOffsetBits) * 8;
    const std::uint64_t head = word(record);
    if (head >> 56 != 1) return {};
    return {state, static_cast<std::uint16_t>(head), static_cast<std::uint16_t>(head >> 16),
            word(record + 8)};
  }

  std::optional<SplitFields> split_of(std::uint64_t route) const {
    const std::size_t record = records_at_ + (route & kOffsetBits) * 8;
    if (route >> 60 != 14 || word(record) >> 56 != 2) return std::nullopt;
    SplitFields split{word(record + 8), word(record + 16), {}};
    for (std::size_t k = 0; k < (word(record) & 0xFFFF); ++k) {
      const std::uint64_t part = word(record + 24 + 16 * k);
      split.parts.push_back({static_cast<State>(part >> 32), static_cast<std::uint16_t>(part),
                             static_cast<std::uint16_t>(part >> 16), word(record + 32 + 16 * k)});
    }
    return split;
  }

  static Seen told(RouteSource source, const RouteFields& route) {
    if (route.state == State::none) return {};
    return {route.state == State::deleted ? Answer::deleted : Answer::found, source, route, {}};
  }

  bool is_reachable(std::uint64_t slot, std::uint64_t group) const {
    const std::uint64_t limit = word(half_ + 16);
    for (std::uint64_t step = 0; step < limit; ++step) {
      if (slot / 16 == group) return true;
      for (std::uint64_t i = 0; i < 16; ++i) {
        if (fingerprint(group * 16 + i) == 0) return false;
      }
      group = group + 1 == groups_ ? 0 : group + 1;
    }
    return false;
  }

  void check_gauge(Counter gauge, std::uint64_t count, std::vector<std::string>& found) const {
    const std::uint64_t said = word(kControl + 576 + static_cast<std::size_t>(gauge) * 8);
    if (said != count) {
      found.push_back(std::string(to_string(gauge)) + " says " + std::to_string(said) +
                      ", there are " + std::to_string(count));
    }
  }

  std::span<const std::byte> bytes_;
  std::uint64_t root_;
  std::size_t half_;
  std::uint64_t groups_ = 0;
  std::uint64_t rules_ = 0;
  std::size_t slots_at_ = 0;
  std::size_t rules_at_ = 0;
  std::size_t records_at_ = 0;
};

}  // namespace fingerpost
