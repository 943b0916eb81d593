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
  std::vector<std::pair<std::string, SplitFields>> splits;
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
      for (const auto& [id, split] : rows.splits) writer.put_split(id, split);
    } else if (step == BatchStep::fallback) {
      for (const auto& [index, route] : rows.rules) writer.put_fallback(index, route);
    } else {
      for (const auto& [id, version] : rows.removals) writer.remove(id, version);
    }
  }
  if (rows.position) writer.publish(*rows.position);
}

// What a reader asks, as a text: a tenant; one object of it; all of its parts.
inline std::string object_of(const std::string& id, const std::string& object) {
  return id + '\n' + object;
}
inline std::string parts_of(const std::string& id) {
  return id + '\t';
}
inline std::string tenant_of(const std::string& question) {
  return question.substr(0, question.find_first_of("\n\t"));
}
inline bool asks_for_parts(const std::string& question) {
  return question.back() == '\t';
}
inline std::optional<std::string> object_in(const std::string& question) {
  const std::size_t at = question.find('\n');
  return at == std::string::npos ? std::nullopt : std::optional(question.substr(at + 1));
}

// What a reader is told of an id.
struct Seen {
  Answer answer = Answer::unknown;
  RouteSource source = RouteSource::none;
  RouteFields route;
  std::vector<RouteFields> parts;  // where all of them were asked for

  bool operator==(const Seen&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const Seen& seen) {
  return out << "answer " << static_cast<int>(seen.answer) << " by '" << to_string(seen.source)
             << "' state '" << to_string(seen.route.state) << "' shard " << seen.route.shard
             << " target " << seen.route.target << " epoch " << seen.route.epoch << " of "
             << seen.route.parts << " parts, " << seen.parts.size() << " shown";
}

struct Told {
  Resolution resolution;
  Seen seen;
};

// Asks by the functions that ship; `long_way`: not by the short way through the first pass.
template <class A, class Memory>
Told tell(const Memory& memory, const std::string& question, bool long_way = false) {
  const std::string id = tenant_of(question);
  Told told;
  if (asks_for_parts(question)) {
    told.resolution = resolve_all<A>(memory, id, [&](unsigned k, const RouteFields& route) {
      told.seen.parts.resize(k);
      told.seen.parts.push_back(route);
    });
    if (told.resolution.answer != Answer::split) told.seen.parts.clear();
  } else if (const auto object = object_in(question)) {
    told.resolution = resolve<A>(memory, id, *object);
  } else if (long_way) {
    told.resolution = resolve_following<A>(memory, id, WholeTenant<A>{});
  } else {
    told.resolution = resolve<A>(memory, id);
  }
  told.seen.answer = told.resolution.answer;
  told.seen.source = told.resolution.source;
  told.seen.route = told.resolution.route;
  return told;
}

// What follows from an entry that is a split, by the parts alone.
inline Seen told_of_split(const SplitFields& split, const std::string& question) {
  const auto with_count = [&](RouteFields route) {
    route.parts = static_cast<std::uint16_t>(split.parts.size());
    return route;
  };
  if (const auto object = object_in(question)) {
    const RouteFields& part = split.parts[placement_hash(*object) % split.parts.size()];
    return {part.state == State::deleted ? Answer::deleted : Answer::found,
            RouteSource::part,
            with_count(part),
            {}};
  }
  Seen seen{Answer::split,
            RouteSource::override_entry,
            with_count({State::split, kNoShard, kNoShard, split.epoch}),
            {}};
  if (asks_for_parts(question)) {
    for (const RouteFields& part : split.parts) seen.parts.push_back(with_count(part));
  }
  return seen;
}

struct Truth {
  std::map<std::string, RouteFields> overrides;
  std::map<std::string, SplitFields> splits;  // of ids that are no overrides
  std::vector<RouteFields> rules;
  FallbackKind kind = FallbackKind::none;
  Position position;

  void apply(const Rows& rows) {
    for (const auto& [id, route] : rows.overrides) {
      if (const auto split = splits.find(id); split != splits.end()) {
        if (split->second.read_at >= route.epoch) continue;
        splits.erase(split);
      }
      take_newer(overrides[id], route);
    }
    for (const auto& [id, split] : rows.splits) {
      const auto own = overrides.find(id);
      if (own != overrides.end() && own->second.epoch > split.read_at) continue;
      const auto known = splits.find(id);
      if (known != splits.end() && known->second.read_at >= split.read_at) continue;
      overrides.erase(id);
      splits[id] = split;
    }
    for (const auto& [index, route] : rows.rules) take_newer(rules[index], route);
    for (const auto& [id, version] : rows.removals) {
      const auto found = overrides.find(id);
      if (found != overrides.end() && found->second.epoch <= version) overrides.erase(found);
      const auto split = splits.find(id);
      if (split != splits.end() && split->second.read_at <= version) splits.erase(split);
    }
    if (rows.position) position = *rows.position;
  }

  Seen at(const std::string& question) const {
    const std::string id = tenant_of(question);
    const auto split = splits.find(id);
    if (split != splits.end()) return told_of_split(split->second, question);
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
    return {route.state == State::deleted ? Answer::deleted : Answer::found, source, route, {}};
  }
};

}  // namespace fingerpost
