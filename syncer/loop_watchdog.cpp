#include "syncer/loop_watchdog.h"

namespace fingerpost {
namespace {

// Of the interval: how often the loop is looked at. Once per look it must have gone round, so a
// loop that stands still is reported for the last time a look after it stopped.
constexpr int kLooks = 4;

}  // namespace

LoopWatchdog::LoopWatchdog(const ServiceManager& manager) : manager_(manager) {
  if (const auto interval = manager.watchdog_interval()) {
    thread_ =
        std::jthread([this, interval](const std::stop_token& stop) { watch(stop, *interval); });
  }
}

void LoopWatchdog::watch(const std::stop_token& stop, std::chrono::microseconds interval) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopping_.wait_for(lock, stop, interval / kLooks, [] { return false; });
    const std::uint64_t beats = beats_.load();
    if (beats != seen) manager_.tell("WATCHDOG=1");
    seen = beats;
  }
}

}  // namespace fingerpost
