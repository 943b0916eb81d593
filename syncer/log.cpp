#include "syncer/log.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

namespace fingerpost {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
constexpr const char* kJsonPattern =  // %v is a JSON string already
    R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","message":%v})";

Log::Format the_format = Log::Format::text;

spdlog::logger& logger() {
  static const auto shared = [] {
    auto made = spdlog::stderr_logger_st("fingerpostd");
    made->set_pattern(kTextPattern);
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *shared;
}

// So that no file name or error of a database begins a line of its own.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

void write(spdlog::level::level_enum level, std::string_view text) {
  if (the_format == Log::Format::text) {
    logger().log(level, "{}", printable(text));
  } else {
    logger().log(
        level, "{}",
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

spdlog::level::level_enum to_spdlog(Log::Level level) {
  switch (level) {
    case Log::Level::info:
      return spdlog::level::info;
    case Log::Level::warning:
      return spdlog::level::warn;
    case Log::Level::error:
      break;
  }
  return spdlog::level::err;
}

}  // namespace

void Log::configure(Format format, Level least) {
  the_format = format;
  logger().set_pattern(format == Format::text ? kTextPattern : kJsonPattern);
  logger().set_level(to_spdlog(least));
}

void Log::info(std::string_view text) {
  write(spdlog::level::info, text);
}
void Log::warning(std::string_view text) {
  write(spdlog::level::warn, text);
}
void Log::error(std::string_view text) {
  write(spdlog::level::err, text);
}

void Log::limited(Level level, std::string_view cause, std::string_view text) {
  const auto now = std::chrono::steady_clock::now();
  const auto [found, is_new] = causes_.try_emplace(std::string(cause));
  Cause& state = found->second;
  if (!is_new && now < state.next) {
    ++state.held_back;
    return;
  }
  if (state.held_back == 0) {
    write(to_spdlog(level), text);
  } else {
    write(to_spdlog(level),
          fmt::format("{} ({} more like this since the last line)", text, state.held_back));
  }
  state = {now + kRepeatEvery, 0};
}

}  // namespace fingerpost
