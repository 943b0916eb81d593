// What every id resolves to, from the rows alone: the model that the table is held against. Knows
// no slot, no order and no memory.
#pragma once

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "shm/batch_order.h"
#include "shm/hash.h"
#include "shm/resolve.h"
#include "shm/segment_writer.h"

namespace fingerpost {

// The rows of one batch.
struct Rows {
  std::optional<std::vector<ShardSpec>> topology;
  std::vector<std::pair<std::string, RouteFields>> overrides;
  std::vector<std::pair<std::uint64_t, RouteFields>> rules;  // by fallback index
  std::vector<std::pair<std::string, std::uint64_t>> removals;
  std::optional<Position> position;
};

// Whether the batch's changes take effect in full is for the caller to judge by what is read.
template <class A>
void apply_rows(SegmentWriter<A>& writer, const Rows& rows) {
  if (rows.topology) (void)writer.publish_topology(*rows.topology);
  for (const BatchStep step : kBatchOrder) {
    if (step == BatchStep::overrides) {
      for (const auto& [id, route] : rows.overrides) writer.put(id, route);
    } else if (step == BatchStep::fallback) {
      for (const auto& [index, route] : rows.rules) writer.put_fallback(index, route);
    } else {
      for (const auto& [id, version] : rows.removals) writer.remove(id, version);
    }
  }
  if (rows.position) writer.publish(*rows.position);
}

// What a reader is told of an id.
struct Seen {
  Answer answer = Answer::unknown;
  RouteSource source = RouteSource::none;
  RouteFields route;

  bool operator==(const Seen&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << "answer " << static_cast<int>(seen.answer) << " by '" << to_string(seen.source)
             << "' state '" << to_string(seen.route.state) << "' shard " << seen.route.shard
             << " target " << seen.route.target << " epoch " << seen.route.epoch;
}

inline Seen seen_of(const Resolution& resolution) {
  return {resolution.answer, resolution.source, resolution.route};
}

struct Truth {
  std::map<std::string, RouteFields> overrides;
  std::vector<RouteFields> rules;
  FallbackKind kind = FallbackKind::none;
  Position position;

  void apply(const Rows& rows) {
    for (const auto& [id, route] : rows.overrides) take_newer(overrides[id], route);
    for (const auto& [index, route] : rows.rules) take_newer(rules[index], route);
    for (const auto& [id, version] : rows.removals) {
      const auto found = overrides.find(id);
      if (found != overrides.end() && found->second.epoch <= version) overrides.erase(found);
    }
    if (rows.position) position = *rows.position;
  }

  Seen at(const std::string& id) const {
    const auto own = overrides.find(id);
    if (own != overrides.end()) return told(RouteSource::override_entry, own->second);
    if (rules.empty()) return {};
    const RouteFields& rule = rules[placement_hash(id) % rules.size()];
    return told(kind == FallbackKind::hash ? RouteSource::hash : RouteSource::bucket, rule);
  }

 private:
  static void take_newer(RouteFields& entry, const RouteFields& route) {
    if (entry.state == State::none || entry.epoch < route.epoch) entry = route;
  }
  static Seen told(RouteSource source, const RouteFields& route) {
    if (route.state == State::none) return {};
    return {route.state == State::deleted ? Answer::deleted : Answer::found, source, route};
  }
};

}  // namespace fingerpost
