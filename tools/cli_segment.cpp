#include "tools/cli_segment.h"

#include <fmt/format.h>

#include "shm/number_text.h"
#include "syncer/duration.h"
#include "tools/text.h"

namespace fingerpost {

CLI::App* add_segment_verb(CLI::App& app, const std::string& verb, const std::string& description,
                           const std::string& example, Context& context, std::string& name) {
  CLI::App* added = add_verb(app, verb, description, example, context);
  add_segment_name(*added, name);
  return added;
}

void add_segment_name(CLI::App& verb, std::string& name) {
  verb.add_option("NAME", name,
                  "The segment: the name that fingerpostd was given (looked for in "
                  "$FINGERPOST_RUNDIR, /run/fingerpost and /dev/shm), or a path")
      ->required();
}

void add_timeout(CLI::App& verb, std::chrono::milliseconds& timeout, const std::string& what_for) {
  add_duration_option(verb, "--timeout", timeout, what_for,
                      fmt::format("{}s", timeout.count() / 1'000));
}

nlohmann::json milliseconds_or_null(std::optional<std::chrono::nanoseconds> time) {
  if (!time) return {};
  return std::chrono::duration_cast<std::chrono::milliseconds>(*time).count();
}

std::string set_aside_text(std::uint64_t quarantined, std::uint64_t withheld) {
  const auto rows = [](std::uint64_t count) {
    return grouped(count) + (count == 1 ? " row " : " rows ");
  };
  std::string text;
  if (quarantined != 0) text = rows(quarantined) + "quarantined, which cannot be applied";
  if (withheld != 0) {
    text += (text.empty() ? "" : "; ") + rows(withheld) + "withheld until somebody approves";
  }
  return text.empty() ? "nothing" : text;
}

std::string text_of(const Readiness& readiness) {
  if (!readiness.ready) return fmt::format("not ready: {}", readiness.reason);
  if (readiness.stale) return fmt::format("ready, stale: {}", readiness.reason);
  return "ready";
}

}  // namespace fingerpost
