#include "tools/cli_explain.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/cli_segment.h"
#include "tools/resolve_explain.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

std::string route_text(const Route& route) {
  if (route.answer() == Answer::split) return fmt::format("split into {} parts", route.parts());
  std::string text(route.shard().name());
  if (!text.empty()) text += " ";
  text += to_string(route.state());
  if (route.target()) text += fmt::format(" to {}", route.target().name());
  return text + fmt::format(", epoch {}", route.epoch());
}

nlohmann::json route_json(const std::string& entry, const std::optional<Route>& route) {
  if (!route || route->state() == State::none) return {};
  return {{"entry", entry},
          {"shard", text_or_null(route->shard().name())},
          {"state", text_or_null(to_string(route->state()))},
          {"target", text_or_null(route->target().name())},
          {"parts", route->parts() == 0 ? nlohmann::json() : nlohmann::json(route->parts())},
          {"epoch", route->epoch()}};
}

std::string row_text(const DirectorySide& side, const std::string& entry) {
  if (!side.row) return fmt::format("{} has no row", entry);
  const TenantRow& row = *side.row;
  std::string text = fmt::format("{} is {} {}", entry, row.shard, row.state);
  if (!row.target.empty()) text += " to " + row.target;
  if (row.parts != 0) text += fmt::format(" in {} parts", row.parts);
  text += fmt::format(", epoch {}, since {}", row.epoch, row.updated_at);
  if (!side.change) return text;
  if (side.change->verb.empty()) return text + ", by plain SQL";
  return text + fmt::format(", by {} ({})", side.change->verb, side.change->who);
}

nlohmann::json side_json(const std::optional<DirectorySide>& side) {
  if (!side) return {};
  nlohmann::json row;
  if (side->row) {
    row = {{"shard", side->row->shard},
           {"state", side->row->state},
           {"target", text_or_null(side->row->target)},
           {"parts", side->row->parts == 0 ? nlohmann::json() : nlohmann::json(side->row->parts)},
           {"epoch", side->row->epoch},
           {"updated_at", side->row->updated_at},
           {"verb", side->change ? text_or_null(side->change->verb) : nlohmann::json()},
           {"who", side->change ? text_or_null(side->change->who) : nlohmann::json()}};
  }
  return {{"version", side->version}, {"row", row}};
}

std::string rule_text(const Explanation& explanation) {
  if (explanation.rule == "override") return "override: its own entry";
  if (explanation.rule == "part") {
    return fmt::format("part: it is split into {}, and the object belongs to {}",
                       explanation.route.parts(), explanation.entry);
  }
  if (explanation.rule == "bucket") return "bucket: it has no entry, and " + explanation.entry;
  if (explanation.rule == "hash") return "hash: it has no entry, and place " + explanation.entry;
  if (explanation.fallback.empty()) return "none: it has no entry, and nothing else answers";
  return "none: it has no entry, and " + explanation.fallback + " has no shard";
}

std::string without_text(const Explanation& explanation) {
  if (explanation.fallback.empty()) return "unknown: nothing else answers";
  if (!explanation.fallback_route) return "unknown: " + explanation.fallback + " has no shard";
  return explanation.fallback + ": " + route_text(*explanation.fallback_route);
}

// nullopt where no directory is named, or none can be read.
std::optional<DirectorySide> look_into_directory(const Context& context, const std::string& entry) {
  const Result<std::string> url = directory_url(context);
  if (!url) return std::nullopt;
  try {
    const auto directory = Directory::open(*url);
    if (directory) return directory_side(**directory, entry);
    report_error(context, directory.status());
  } catch (const SqliteError& error) {
    report_error(context, error.status());
  }
  return std::nullopt;
}

}  // namespace

Status print_explanation(Context& context, const Reader& reader, const std::string& id,
                         const std::optional<std::string>& object) {
  const Result<Explanation> explained = explain(reader, id, object);
  if (!explained) return explained.status();
  const Explanation& explanation = *explained;
  const bool own = explanation.rule == "override" || explanation.rule == "part";
  // Of a route by hash there is no row but the layout's.
  const bool has_row = !explanation.entry.starts_with("hash:");
  const auto side = look_into_directory(context, has_row ? explanation.entry : id);
  const Readiness readiness = reader.readiness();
  if (context.json) {
    print_json(
        {{"id", id},
         {"rule", explanation.rule},
         {"row", route_json(explanation.entry, explanation.route)},
         {"without_override",
          own ? route_json(explanation.fallback, explanation.fallback_route) : nlohmann::json()},
         {"version", reader.version()},
         {"age_ms", milliseconds_or_null(reader.age())},
         {"stale", readiness.stale},
         {"reason", text_or_null(readiness.reason)},
         {"directory", side_json(side)}});
    return {};
  }
  const auto age = reader.age();
  std::cout << fmt::format("  rule      {}\n", rule_text(explanation));
  if (explanation.route.state() != State::none) {
    std::cout << fmt::format("  row       {}: {}\n", explanation.entry,
                             route_text(explanation.route));
  }
  if (own) std::cout << fmt::format("  without   {}\n", without_text(explanation));
  std::cout << fmt::format(
      "  segment   at version {}, {}\n", reader.version(),
      age ? "as read " +
                spoken_duration(
                    std::chrono::duration_cast<std::chrono::milliseconds>(*age).count()) +
                " ago"
          : "of unknown age");
  if (side) {
    std::cout << fmt::format("  directory at version {}: {}\n", side->version,
                             row_text(*side, has_row ? explanation.entry : id));
  }
  return {};
}

}  // namespace fingerpost
