// Worker processes for the contention harness: each opens the segment as any worker does, resolves
// while it is told to, and checks every answer.
//
// Parent and workers talk through a board of words in shared anonymous memory: no pipe, no signal
// in the measured loop.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/histogram.h"
#include "bench/stream.h"
#include "shm/atomics.h"

namespace fingerpost::bench {

enum class Order : std::uint32_t {
  pause,
  resolve,  // as fast as possible
  time,     // each resolve between two looks at the clock, into the histogram
  end,
};

struct alignas(64) WorkerBoard {
  Order ordered() const {
    return static_cast<Order>(order.load(kAcquire));  // pairs: worker-order
  }
  void tell(Order next) {
    order.store(static_cast<std::uint32_t>(next), kRelease);  // pairs: worker-order
    StdAtomics::wake_all(order);
  }

  StdAtomics::Word32 order{0};  // an Order; a paused worker sleeps on it
  alignas(64) std::atomic<bool> ready{false};
  std::atomic<bool> paused{false};
  std::atomic<std::uint64_t> lookups{0};
  std::atomic<std::uint64_t> cpu_ns{0};  // that they took this worker
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> undetermined{0};
  Histogram times;
};

// What one worker did in a window.
struct Work {
  double lookups = 0;
  double cpu_ns = 0;
  double rate() const { return cpu_ns == 0 ? 0 : lookups * 1e9 / cpu_ns; }  // per processor second
};

class Workers {
 public:
  // Forks `count` workers, over the processors in turn beginning with the measured one, and waits
  // until each has asked every question of `stream` once.
  Workers(const std::string& segment, const Stream& stream, unsigned count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Lets the first `active` of them run for a window; what each did.
  std::vector<Work> run(unsigned active, int milliseconds, Order order = Order::resolve);
  void clear_times();
  const Histogram& times(unsigned worker) const { return board_[worker].times; }

  std::uint64_t wrong() const { return total(&WorkerBoard::wrong); }
  std::uint64_t undetermined() const { return total(&WorkerBoard::undetermined); }

 private:
  std::uint64_t total(std::atomic<std::uint64_t> WorkerBoard::*member) const;
  void pause_all();

  WorkerBoard* board_;
  unsigned count_;
  std::vector<pid_t> children_;
};

// How many KiB of private memory this process takes when it becomes a worker: opens the segment and
// resolves `lookups` ids. A forked child would hide it among the pages it shares with its parent,
// so this is asked of a program just started.
std::uint64_t anon_kib_of_a_worker(const std::string& segment, std::uint64_t entries,
                                   std::uint64_t lookups);

double sum_of_rates(const std::vector<Work>& work);

}  // namespace fingerpost::bench
