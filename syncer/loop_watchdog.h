// Judges the daemon's loop from outside: a thread that tells the service manager that all is well
// only while the loop shows that it goes round.
//
// beat() may be called from one other thread, at any rate.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "syncer/service_manager.h"

namespace fingerpost {

class LoopWatchdog {
 public:
  // Does nothing where the manager expects no WATCHDOG. `manager` outlives this.
  explicit LoopWatchdog(const ServiceManager& manager);

  void beat() noexcept { beats_.fetch_add(1); }

 private:
  void watch(const std::stop_token& stop, std::chrono::microseconds interval);

  const ServiceManager& manager_;
  std::atomic<std::uint64_t> beats_{0};
  std::mutex mutex_;
  std::condition_variable_any stopping_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace fingerpost
