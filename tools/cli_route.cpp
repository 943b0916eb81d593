#include "tools/cli_route.h"

#include <fmt/format.h>

#include <iostream>

#include "shm/tenant_id.h"
#include "tools/cli_segment.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

std::string_view text_of(Answer answer) {
  switch (answer) {
    case Answer::found:
      return "found";
    case Answer::unknown:
      return "unknown";
    case Answer::deleted:
      return "deleted";
    case Answer::split:
      return "split";
    case Answer::refused:
      return "refused";
    case Answer::undetermined:
      break;
  }
  return "undetermined";
}

nlohmann::json replicas_of(const ShardView& shard) {
  if (!shard) return {};
  nlohmann::json replicas = nlohmann::json::array();
  for (std::size_t i = 0; i < shard.replica_count(); ++i) replicas.push_back(shard.replica(i));
  return replicas;
}

void print_route_json(const Reader& reader, const std::string& id, const Route& route) {
  const ShardView shard = route.shard();
  const Readiness readiness = reader.readiness();
  const bool has_entry = route.state() != State::none;
  const auto why_refused = route.answer() == Answer::refused ? why_not_tenant_id(id) : std::nullopt;
  print_json({{"id", id},
              {"status", text_of(route.answer())},
              {"shard", text_or_null(shard.name())},
              {"primary", text_or_null(shard.primary())},
              {"replicas", replicas_of(shard)},
              {"region", text_or_null(shard.region())},
              {"epoch", has_entry ? nlohmann::json(route.epoch()) : nlohmann::json()},
              {"state", text_or_null(to_string(route.state()))},
              {"target", text_or_null(route.target().name())},
              {"parts", route.parts() == 0 ? nlohmann::json() : nlohmann::json(route.parts())},
              {"writable", route.writable()},
              {"source", text_or_null(to_string(route.source()))},
              {"version", reader.version()},
              {"generation", reader.generation()},
              {"age_ms", milliseconds_or_null(reader.age())},
              {"stale", readiness.stale},
              {"reason", text_or_null(why_refused.value_or(readiness.reason))}});
}

void print_route_text(const Context& context, const std::string& id, const Route& route) {
  if (route.answer() == Answer::refused) {
    const auto why = why_not_tenant_id(id);
    report_error(context, {Code::refused, fmt::format("tenant id {} {}", in_quotes(id),
                                                      why.value_or("is refused"))});
  } else if (route.answer() == Answer::split) {
    std::cout << fmt::format("{}\tsplit\t{} parts\n", id, route.parts());
  } else if (route.state() == State::none) {
    std::cout << fmt::format("{}\t{}\n", id, text_of(route.answer()));
  } else {
    const ShardView shard = route.shard();
    std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", id, text_of(route.answer()),
                             shard.name(), shard.primary(), to_string(route.state()),
                             route.target().name(), route.epoch(), to_string(route.source()));
  }
}

}  // namespace

void print_route(const Context& context, const Reader& reader, const std::string& id,
                 const Route& route) {
  if (context.json) {
    print_route_json(reader, id, route);
  } else {
    print_route_text(context, id, route);
  }
}

}  // namespace fingerpost
