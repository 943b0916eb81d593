#include "bench/writer_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>
#include <stdexcept>

#include "bench/machine.h"

namespace fingerpost::bench {
namespace {

constexpr std::uint64_t kBatchesPerSecond = 100;

class ChangingWriter {
 public:
  ChangingWriter(SegmentWriter<StdAtomics>& writer, const Contents& contents, WriterBoard& board)
      : writer_(writer), contents_(contents), board_(board), version_(writer.position().version) {}

  void live() {
    std::int64_t next = now_ns();
    while (!board_.end) {
      switch (board_.job.load()) {
        case Job::nothing:
          ::usleep(500);
          next = now_ns();
          break;
        case Job::change:
          batch(std::max<std::uint64_t>(1, board_.rate / kBatchesPerSecond));
          publish();
          next += 1'000'000'000 / kBatchesPerSecond;
          if (const std::int64_t left = next - now_ns(); left > 0)
            ::usleep(static_cast<useconds_t>(left / 1'000));
          break;
        case Job::rebuild:
          rebuild();
          board_.job = Job::nothing;
          break;
        case Job::stop_in_batch:
          batch(1);
          board_.job = Job::nothing;
          ::raise(SIGSTOP);
          publish();
          break;
      }
    }
  }

 private:
  void batch(std::uint64_t count) {
    ++version_;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t number = mix(++drawn_) % contents_.entries;
      RouteFields route = route_of(number);
      route.epoch = contents_.entries + version_;
      writer_.put(make_key(contents_.shape, number), route);
    }
    board_.changes += count;
  }
  void publish() { writer_.publish({1, contents_.entries + version_, version_, 0}); }

  void rebuild() {
    check(writer_.begin_copy({}, mix(++drawn_)));
    while (!checked(writer_.step_copy(std::chrono::milliseconds(1)))) {
    }
    writer_.switch_generation();
    ++board_.rebuilds;
  }

  SegmentWriter<StdAtomics>& writer_;
  Contents contents_;
  WriterBoard& board_;
  std::uint64_t version_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

WriterProcess::WriterProcess(BenchSegment& segment, const Contents& contents) {
  void* memory = ::mmap(nullptr, sizeof(WriterBoard), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the writer's board");
  board_ = new (memory) WriterBoard;
  child_ = ::fork();
  if (child_ < 0) throw std::runtime_error("cannot fork a writer");
  if (child_ == 0) {
    try {
      pin_to(other_cpu());
      ChangingWriter(segment.writer(), contents, *board_).live();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
}

WriterProcess::~WriterProcess() {
  board_->end = true;
  if (child_ > 0) {
    ::kill(child_, SIGCONT);
    ::waitpid(child_, nullptr, 0);
  }
  ::munmap(board_, sizeof(WriterBoard));
}

void WriterProcess::change(std::uint64_t per_second) {
  board_->rate = per_second;
  board_->job = per_second == 0 ? Job::nothing : Job::change;
}
void WriterProcess::rebuild() {
  board_->job = Job::rebuild;
}
void WriterProcess::rest() {
  // A rebuild ends by itself.
  while (board_->job == Job::rebuild) ::usleep(1'000);
  board_->job = Job::nothing;
}

void WriterProcess::stop_in_batch() {
  board_->job = Job::stop_in_batch;
  int status = 0;
  if (::waitpid(child_, &status, WUNTRACED) != child_ || !WIFSTOPPED(status))
    throw std::runtime_error("the writer did not stop");
}

void WriterProcess::kill() {
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  child_ = -1;
}

}  // namespace fingerpost::bench
