#include "bench/worker.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <stdexcept>

#include "bench/bench_segment.h"
#include "bench/machine.h"
#include "reader/reader.h"
#include "shm/text_file.h"

namespace fingerpost::bench {
namespace {

constexpr std::size_t kPerReport = 1'024;  // lookups between two looks at the processor clock

std::uint64_t anon_kib() {
  return number_after(read_text_file("/proc/self/status").value_or(""), "RssAnon").value_or(0);
}

class Worker {
 public:
  Worker(WorkerBoard& board, const std::string& segment, const Stream& stream, std::size_t first)
      : board_(board), stream_(stream), at_(first % stream.size()) {
    reader_.emplace(checked(Reader::open(segment)));
  }

  void live() {
    for (std::size_t asked = 0; asked < stream_.size(); asked += kPerReport) resolve_some();
    board_.ready = true;
    for (;;) {
      switch (board_.ordered()) {
        case Order::pause:
          board_.undetermined = reader_->undetermined_count();
          board_.paused = true;
          // Asleep, not polling: many paused workers would take the processor from the one that
          // runs.
          while (board_.ordered() == Order::pause)
            StdAtomics::wait(board_.order, static_cast<std::uint32_t>(Order::pause),
                             std::chrono::seconds(1));
          board_.paused = false;
          break;
        case Order::resolve:
          report([this] { resolve_some(); });
          break;
        case Order::time:
          report([this] { time_some(); });
          break;
        case Order::end:
          return;
      }
    }
  }

 private:
  void judge(const Route& route, std::size_t question) {
    const std::uint64_t number = stream_.number(question);
    if (!route.found() || route.epoch() < answer_of(number) ||
        route.shard().name() != "shard-" + std::to_string(shard_of(number))) {
      ++wrong_;
    }
  }
  // Cheap enough for the measured loop: the epoch only ever grows from the entry's first one.
  void look(std::size_t question) {
    const Route route = reader_->resolve(stream_.ids()[question]);
    wrong_ += !route.found() || route.epoch() < answer_of(stream_.number(question));
    last_ = route;
  }

  void resolve_some() {
    for (std::size_t i = 0; i < kPerReport; ++i) {
      look(at_);
      if (++at_ == stream_.size()) at_ = 0;
    }
    judge(last_, at_ == 0 ? stream_.size() - 1 : at_ - 1);
  }
  void time_some() {
    for (std::size_t i = 0; i < kPerReport; ++i) {
      const std::int64_t begin = now_ns();
      look(at_);
      board_.times.record(static_cast<std::uint64_t>(now_ns() - begin));
      if (++at_ == stream_.size()) at_ = 0;
    }
  }

  template <class Some>
  void report(Some&& some) {
    const std::int64_t begin = thread_ns();
    some();
    board_.cpu_ns.fetch_add(static_cast<std::uint64_t>(thread_ns() - begin));
    board_.lookups.fetch_add(kPerReport);
    board_.wrong.store(wrong_);
  }

  WorkerBoard& board_;
  const Stream& stream_;
  std::size_t at_;
  std::optional<Reader> reader_;
  Route last_;
  std::uint64_t wrong_ = 0;
};

}  // namespace

Workers::Workers(const std::string& segment, const Stream& stream, unsigned count) : count_(count) {
  void* memory = ::mmap(nullptr, sizeof(WorkerBoard) * count, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the workers' board");
  board_ = static_cast<WorkerBoard*>(memory);
  for (unsigned i = 0; i < count; ++i) {
    new (&board_[i]) WorkerBoard;
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("cannot fork a worker");
    if (child == 0) {
      try {
        pin_to(i % 2 == 0 ? measured_cpu() : other_cpu());
        Worker(board_[i], segment, stream, i * stream.size() / count).live();
      } catch (const std::exception&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    children_.push_back(child);
  }
  for (unsigned i = 0; i < count; ++i) {
    while (!board_[i].ready) {
      if (::waitpid(children_[i], nullptr, WNOHANG) != 0)
        throw std::runtime_error("a worker cannot open " + segment);
      ::usleep(1'000);
    }
  }
}

Workers::~Workers() {
  for (unsigned i = 0; i < count_; ++i) board_[i].tell(Order::end);
  for (const pid_t child : children_) ::waitpid(child, nullptr, 0);
  ::munmap(board_, sizeof(WorkerBoard) * count_);
}

void Workers::pause_all() {
  for (unsigned i = 0; i < count_; ++i) board_[i].tell(Order::pause);
  for (unsigned i = 0; i < count_; ++i) {
    while (!board_[i].paused) ::usleep(100);
  }
}

std::vector<Work> Workers::run(unsigned active, int milliseconds, Order order) {
  pause_all();
  std::vector<Work> work(active);
  for (unsigned i = 0; i < active; ++i) {
    work[i].lookups = -static_cast<double>(board_[i].lookups);
    work[i].cpu_ns = -static_cast<double>(board_[i].cpu_ns);
    board_[i].tell(order);
  }
  ::usleep(static_cast<useconds_t>(milliseconds) * 1'000);
  pause_all();
  for (unsigned i = 0; i < active; ++i) {
    work[i].lookups += static_cast<double>(board_[i].lookups);
    work[i].cpu_ns += static_cast<double>(board_[i].cpu_ns);
  }
  return work;
}

void Workers::clear_times() {
  pause_all();
  for (unsigned i = 0; i < count_; ++i) board_[i].times.clear();
}

std::uint64_t Workers::total(std::atomic<std::uint64_t> WorkerBoard::*member) const {
  std::uint64_t sum = 0;
  for (unsigned i = 0; i < count_; ++i) sum += board_[i].*member;
  return sum;
}

std::uint64_t anon_kib_of_a_worker(const std::string& segment, std::uint64_t entries,
                                   std::uint64_t lookups) {
  const auto ask = [&](const Reader* reader, std::uint64_t i) {
    const std::uint64_t number = mix(i) % entries;
    const std::string id = make_key(KeyShape::uuid, number);
    if (reader != nullptr && reader->resolve(id).epoch() < answer_of(number))
      throw std::runtime_error("a wrong answer for " + id);
  };
  ask(nullptr, 0);  // what making an id takes is not the reader's
  anon_kib();
  const std::uint64_t before = anon_kib();
  const Reader reader = checked(Reader::open(segment));
  for (std::uint64_t i = 0; i < lookups; ++i) ask(&reader, i);
  return anon_kib() - before;
}

double sum_of_rates(const std::vector<Work>& work) {
  double lookups = 0;
  double cpu_ns = 0;
  for (const Work& one : work) {
    lookups += one.lookups;
    cpu_ns += one.cpu_ns;
  }
  return cpu_ns == 0 ? 0 : lookups * 1e9 / cpu_ns;
}

}  // namespace fingerpost::bench
