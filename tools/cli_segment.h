// What the verbs that look at a segment share.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "reader/reader.h"
#include "tools/cli_context.h"

namespace fingerpost {

// A verb with --json and NAME, the segment.
CLI::App* add_segment_verb(CLI::App& app, const std::string& verb, const std::string& description,
                           const std::string& example, Context& context, std::string& name);
// The NAME alone, for a verb that has its flags already.
void add_segment_name(CLI::App& verb, std::string& name);

// --timeout, with what `timeout` holds as its default.
void add_timeout(CLI::App& verb, std::chrono::milliseconds& timeout, const std::string& what_for);

// Null where there is nothing to say.
nlohmann::json milliseconds_or_null(std::optional<std::chrono::nanoseconds> time);

// What a syncer sets aside: rows that it cannot apply, and changes that wait for somebody.
std::string set_aside_text(std::uint64_t quarantined, std::uint64_t withheld);

// "ready", "ready, stale: WHY" or "not ready: WHY".
std::string text_of(const Readiness& readiness);

}  // namespace fingerpost
