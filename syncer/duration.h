// Durations as people type them.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace fingerpost {

inline constexpr std::chrono::milliseconds kDurationMax = std::chrono::hours(24 * 3'650);

// From "250ms", "5s", "10m", "24h", "30d" or a plain number of seconds, up to ten years (so that it
// fits as nanoseconds); nullopt for anything else.
inline std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) noexcept {
  std::uint64_t number = 0;
  const auto [unit_at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(unit_at - text.data()));
  std::uint64_t milliseconds = 0;
  if (unit == "ms") {
    milliseconds = 1;
  } else if (unit.empty() || unit == "s") {
    milliseconds = 1'000;
  } else if (unit == "m") {
    milliseconds = 60'000;
  } else if (unit == "h") {
    milliseconds = 3'600'000;
  } else if (unit == "d") {
    milliseconds = 86'400'000;
  } else {
    return std::nullopt;
  }
  if (number > static_cast<std::uint64_t>(kDurationMax.count()) / milliseconds) return std::nullopt;
  return std::chrono::milliseconds(number * milliseconds);
}

}  // namespace fingerpost
