// A process that changes a segment as a syncer does, at a rate, while it is told to.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "bench/bench_segment.h"

namespace fingerpost::bench {

enum class Job : std::uint32_t {
  nothing,
  change,         // `rate` routes a second, in batches a hundredth of a second apart
  rebuild,        // one whole copy of the table into the other half and a switch, then nothing
  stop_in_batch,  // SIGSTOP between a change and its publication
};

struct WriterBoard {
  std::atomic<Job> job{Job::nothing};
  std::atomic<std::uint64_t> rate{0};
  std::atomic<std::uint64_t> changes{0};
  std::atomic<std::uint64_t> rebuilds{0};
  std::atomic<bool> end{false};
};

class WriterProcess {
 public:
  // Forks. From now on only the child writes `segment`, which must outlive this object; it runs on
  // the other processor.
  WriterProcess(BenchSegment& segment, const Contents& contents);
  ~WriterProcess();
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;

  void change(std::uint64_t per_second);
  void rebuild();
  void rest();
  // Returns when the process is stopped, in the middle of a batch.
  void stop_in_batch();
  void kill();

  std::uint64_t changes() const { return board_->changes; }
  std::uint64_t rebuilds() const { return board_->rebuilds; }

 private:
  WriterBoard* board_;
  pid_t child_ = -1;
};

}  // namespace fingerpost::bench
