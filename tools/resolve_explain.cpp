#include "tools/resolve_explain.h"

#include <fmt/format.h>

#include "shm/hash.h"
#include "shm/tenant_id.h"

namespace fingerpost {
namespace {

constexpr int kAttemptsMax = 5;  // a generation switch in each of them is a table that only grows
constexpr std::string_view kHashPrefix = "hash:";

// "bucket:N" or "hash:N"; empty where nothing but entries answers.
std::string fallback_of(const Reader& reader, std::string_view id) {
  const SegmentStatus status = reader.status();
  const std::uint64_t hash = placement_hash(id);
  if (status.buckets != 0) return fmt::format("{}{}", kBucketPrefix, hash % status.buckets);
  if (status.hash_shards != 0) return fmt::format("{}{}", kHashPrefix, hash % status.hash_shards);
  return {};
}

Result<std::optional<Route>> fallback_route(const Reader& reader, std::string_view fallback) {
  std::optional<Route> route;
  if (fallback.empty()) return route;
  Status visited;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    route.reset();
    visited = reader.visit_entries([&](std::string_view id, const Route& found) {
      if (found.source() != RouteSource::override_entry && id == fallback) route = found;
    });
    if (visited.ok()) return route;
  }
  return visited;
}

}  // namespace

Result<Explanation> explain(const Reader& reader, std::string_view id,
                            const std::optional<std::string>& object) {
  Explanation explanation;
  explanation.fallback = fallback_of(reader, id);
  Result<std::optional<Route>> fallback = fallback_route(reader, explanation.fallback);
  if (!fallback) return fallback.status();
  explanation.fallback_route = *std::move(fallback);
  explanation.route = object ? reader.resolve(id, *object) : reader.resolve(id);
  if (explanation.route.source() == RouteSource::part) {
    const auto part = placement_hash(*object) % explanation.route.parts();
    explanation.entry = part_entry_id(static_cast<std::uint32_t>(part), id);
    explanation.rule = to_string(RouteSource::part);
    return explanation;
  }
  const bool own = explanation.route.source() == RouteSource::override_entry ||
                   explanation.route.answer() == Answer::split;
  const bool answered = explanation.route.state() != State::none;
  explanation.entry = own || explanation.fallback.empty() ? std::string(id) : explanation.fallback;
  explanation.rule = own ? "override" : !answered ? "none" : to_string(explanation.route.source());
  return explanation;
}

DirectorySide directory_side(Directory& directory, const std::string& entry) {
  DirectorySide side;
  side.version = directory.version();
  side.row = find_entry(directory, entry);
  if (!side.row) return side;
  // By the row's own epoch: whatever is written meanwhile, it goes with this row.
  const auto change = entry_at(directory, entry, side.row->epoch);
  if (change) side.change = *change;
  return side;
}

}  // namespace fingerpost
