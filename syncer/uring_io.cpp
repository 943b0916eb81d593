#include "syncer/uring_io.h"

#include <liburing.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

// Under pressure the kernel asks to try again. Past this it is not pressure, and a disk does not
// need a ring.
constexpr int kRetriesMax = 64;
constexpr auto kRetryPause = 100us;
// How long a ring that failed is given to complete what it holds; a buffered write of 1 MiB takes
// milliseconds.
constexpr auto kReleasePause = 1ms;
constexpr int kReleasePausesMax = 2'000;

bool is_passing(int error) {
  return error == EINTR || error == EAGAIN || error == EBUSY;
}

// Whether the ring can do what we ask of it; 0 or the errno of why not.
int probe(io_uring& ring) {
  constexpr unsigned kOps = 256;
  struct Free {
    void operator()(void* bytes) const { std::free(bytes); }
  };
  const std::unique_ptr<void, Free> bytes(
      std::calloc(1, sizeof(io_uring_probe) + kOps * sizeof(io_uring_probe_op)));
  if (bytes == nullptr) return ENOMEM;
  auto* found = static_cast<io_uring_probe*>(bytes.get());
  if (const int result = io_uring_register_probe(&ring, found, kOps); result < 0) return -result;
  for (const int op : {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_FSYNC}) {
    if (io_uring_opcode_supported(found, op) == 0) return EOPNOTSUPP;
  }
  return 0;
}

class UringBackend final : public IoBackend {
 public:
  // Takes the ring over.
  explicit UringBackend(const io_uring& ring) : ring_(ring) {}
  ~UringBackend() override { io_uring_queue_exit(&ring_); }
  UringBackend(const UringBackend&) = delete;
  UringBackend& operator=(const UringBackend&) = delete;

  std::string_view name() const override { return "io_uring"; }
  IoFault fault() const override { return fault_; }

  void start(const IoRequest& request) override {
    waiting_.push_back(request.id);
    if (fault_.error != 0) return;
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    assert(sqe != nullptr);
    const auto size = static_cast<unsigned>(request.size);
    switch (request.op) {
      case IoOp::read:
        io_uring_prep_read(sqe, request.fd, request.data, size, request.offset);
        break;
      case IoOp::write:
        io_uring_prep_write(sqe, request.fd, request.data, size, request.offset);
        break;
      case IoOp::sync:
        io_uring_prep_fsync(sqe, request.fd, 0);
        break;
    }
    // Kernel threads do the copying, so that the syncer's thread never does it between two applies.
    io_uring_sqe_set_flags(sqe, IOSQE_ASYNC);
    io_uring_sqe_set_data64(sqe, request.id);
    submit();
  }

  void collect(std::vector<IoCompletion>& done, bool wait) override {
    for (;;) {
      reap();
      if (!wait || !reaped_.empty() || held_.empty()) break;
      const int result = io_uring_enter(static_cast<unsigned>(ring_.ring_fd), 0, 1,
                                        IORING_ENTER_GETEVENTS, nullptr);
      if (result >= 0) continue;
      if (!is_passing(-result)) {
        fault_ = {"io_uring_enter", -result};
        break;
      }
      // What is held completes whether or not we are let in to wait for it.
      std::this_thread::sleep_for(kRetryPause);
    }
    done.insert(done.end(), reaped_.begin(), reaped_.end());
    reaped_.clear();
  }

  std::vector<std::uint64_t> release(std::vector<IoCompletion>& done) override {
    reap();
    for (int pause = 0; !held_.empty() && pause < kReleasePausesMax; ++pause) {
      std::this_thread::sleep_for(kReleasePause);
      reap();
    }
    done.insert(done.end(), reaped_.begin(), reaped_.end());
    reaped_.clear();
    return held_;
  }

 private:
  // Hands everything prepared to the kernel. What it took can be told from what it did not,
  // whatever the call answers, so nothing is lost or sent twice.
  void submit() {
    for (int retry = 0;; ++retry) {
      const int result = io_uring_submit(&ring_);
      const std::size_t left = io_uring_sq_ready(&ring_);
      const auto taken = waiting_.end() - static_cast<std::ptrdiff_t>(left);
      held_.insert(held_.end(), waiting_.begin(), taken);
      waiting_.erase(waiting_.begin(), taken);
      if (waiting_.empty()) return;
      const int error = result < 0 ? -result : EAGAIN;
      if (!is_passing(error) || retry == kRetriesMax) {
        fault_ = {"io_uring_enter", error};
        return;
      }
      reap();
      std::this_thread::sleep_for(kRetryPause);
    }
  }

  void reap() {
    std::array<io_uring_cqe*, kIoDepthMax> completions;
    while (const unsigned count =
               io_uring_peek_batch_cqe(&ring_, completions.data(), completions.size())) {
      for (unsigned i = 0; i < count; ++i) {
        const std::uint64_t id = io_uring_cqe_get_data64(completions[i]);
        reaped_.push_back({id, completions[i]->res});
        held_.erase(std::remove(held_.begin(), held_.end(), id), held_.end());
      }
      io_uring_cq_advance(&ring_, count);
    }
  }

  io_uring ring_;
  IoFault fault_;
  std::vector<std::uint64_t> waiting_;  // ids prepared and not taken by the kernel, in order
  std::vector<std::uint64_t> held_;     // ids that the kernel works on
  std::vector<IoCompletion> reaped_;
};

}  // namespace

std::unique_ptr<IoBackend> make_uring_backend(unsigned depth, IoFault& why) {
  io_uring ring{};
  if (const int result = io_uring_queue_init(depth, &ring, 0); result < 0) {
    why = {"io_uring_setup", -result};
    return nullptr;
  }
  if (const int error = probe(ring); error != 0) {
    io_uring_queue_exit(&ring);
    why = {"io_uring_register", error};
    return nullptr;
  }
  return std::make_unique<UringBackend>(ring);
}

}  // namespace fingerpost
