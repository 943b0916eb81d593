#include "syncer/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace fingerpost {
namespace {

spdlog::logger& logger() {
  static const auto shared = [] {
    auto made = spdlog::stderr_logger_st("fingerpostd");
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *shared;
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

void Log::info(std::string_view text) {
  logger().info("{}", text);
}
void Log::warning(std::string_view text) {
  logger().warn("{}", text);
}
void Log::error(std::string_view text) {
  logger().error("{}", text);
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
    logger().log(to_spdlog(level), "{}", text);
  } else {
    logger().log(to_spdlog(level), "{} ({} more like this since the last line)", text,
                 state.held_back);
  }
  state = {now + kRepeatEvery, 0};
}

}  // namespace fingerpost
