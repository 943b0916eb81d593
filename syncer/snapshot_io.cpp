#include "syncer/snapshot_io.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "syncer/uring_io.h"

namespace fingerpost {
namespace {

constexpr std::size_t kPageBytes = 4'096;
constexpr std::uint64_t kSlotBits =
    8;  // of a request's id; the rest counts starts, so no id comes twice
static_assert(kIoDepthMax < (1U << kSlotBits));

IoBuffer allocate_buffer() {
  void* bytes = std::aligned_alloc(kPageBytes, kIoBufferBytes);
  if (bytes == nullptr) throw std::bad_alloc();
  return IoBuffer(static_cast<std::byte*>(bytes));
}

// The kernel may still read from or write into these, whenever it likes: they are never used again.
void abandon(IoBuffer buffer) {
  static auto* abandoned = new std::vector<IoBuffer>();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  abandoned->push_back(std::move(buffer));
}

class PlainBackend final : public IoBackend {
 public:
  PlainBackend() {
    // A signal meant for the process must not end up in a thread that waits for a disk.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      // start() then does the work itself.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  ~PlainBackend() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    work_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  std::string_view name() const override { return "plain"; }

  void start(const IoRequest& request) override {
    if (!thread_.joinable()) {
      done_.push_back({request.id, transfer(request)});
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(request);
    }
    work_.notify_one();
  }

  void collect(std::vector<IoCompletion>& done, bool wait) override {
    std::unique_lock lock(mutex_);
    if (wait) progress_.wait(lock, [this] { return !done_.empty(); });
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }

  std::vector<std::uint64_t> release(std::vector<IoCompletion>& done) override {
    std::unique_lock lock(mutex_);
    queue_.clear();
    progress_.wait(lock, [this] { return !at_work_; });
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
    return {};
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      const IoRequest request = queue_.front();
      queue_.pop_front();
      at_work_ = true;
      lock.unlock();
      const std::int64_t result = transfer(request);
      lock.lock();
      at_work_ = false;
      done_.push_back({request.id, result});
      progress_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable progress_;
  std::deque<IoRequest> queue_;
  std::vector<IoCompletion> done_;
  bool at_work_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace

std::int64_t transfer(const IoRequest& request) noexcept {
  for (;;) {
    std::int64_t result = 0;
    switch (request.op) {
      case IoOp::read:
        result =
            ::pread(request.fd, request.data, request.size, static_cast<off_t>(request.offset));
        break;
      case IoOp::write:
        result =
            ::pwrite(request.fd, request.data, request.size, static_cast<off_t>(request.offset));
        break;
      case IoOp::sync:
        result = ::fsync(request.fd);
        break;
    }
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

std::unique_ptr<IoBackend> make_plain_backend() {
  return std::make_unique<PlainBackend>();
}

void IoBufferDelete::operator()(std::byte* buffer) const noexcept {
  std::free(buffer);
}

SnapshotIo::SnapshotIo(const IoOptions& options)
    : slots_(std::clamp(options.depth, 1U, kIoDepthMax)), on_ring_(false) {
  if (options.choice == IoChoice::automatic)
    backend_ = make_uring_backend(depth(), stats_.ring_fault);
  on_ring_ = backend_ != nullptr;
  if (!on_ring_) backend_ = make_plain_backend();
  stats_.backend = backend_->name();
}

SnapshotIo::SnapshotIo(unsigned depth, std::unique_ptr<IoBackend> backend)
    : slots_(depth), backend_(std::move(backend)), on_ring_(true) {
  assert(depth >= 1 && depth <= kIoDepthMax);
  stats_.backend = backend_->name();
}

SnapshotIo::~SnapshotIo() {
  std::vector<IoCompletion> done;
  for (const std::uint64_t id : backend_->release(done)) {
    if (Slot* slot = slot_of(id)) abandon(std::move(slot->buffer));
  }
}

IoBuffer SnapshotIo::take_buffer() {
  if (spare_.empty()) return allocate_buffer();
  IoBuffer buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void SnapshotIo::give_back(IoBuffer buffer) {
  if (buffer != nullptr) spare_.push_back(std::move(buffer));
}

void SnapshotIo::read(std::uint64_t tag, int fd, std::uint64_t offset, IoBuffer buffer,
                      std::size_t size) {
  std::byte* data = buffer.get();
  submit(tag, {0, IoOp::read, fd, offset, data, size}, std::move(buffer));
}

void SnapshotIo::write(std::uint64_t tag, int fd, std::uint64_t offset, IoBuffer buffer,
                       std::size_t size) {
  std::byte* data = buffer.get();
  submit(tag, {0, IoOp::write, fd, offset, data, size}, std::move(buffer));
}

void SnapshotIo::sync(std::uint64_t tag, int fd) {
  submit(tag, {0, IoOp::sync, fd, 0, nullptr, 0}, nullptr);
}

void SnapshotIo::submit(std::uint64_t tag, IoRequest request, IoBuffer buffer) {
  assert(in_flight_ < depth() && request.size <= kIoBufferBytes);
  const auto slot =
      std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return !s.busy; });
  slot->request = request;
  slot->buffer = std::move(buffer);
  slot->tag = tag;
  slot->bytes = 0;
  slot->busy = true;
  ++in_flight_;
  ++stats_.requests;
  stats_.depth_reached = std::max(stats_.depth_reached, in_flight_);
  start(*slot);
  if (backend_->fault().error != 0) change_to_plain();
}

void SnapshotIo::start(Slot& slot) {
  slot.request.id = ++starts_ << kSlotBits | static_cast<std::uint64_t>(&slot - slots_.data());
  backend_->start(slot.request);
}

SnapshotIo::Slot* SnapshotIo::slot_of(std::uint64_t id) {
  const std::uint64_t index = id & ((1U << kSlotBits) - 1);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  return slot.busy && slot.request.id == id ? &slot : nullptr;
}

bool SnapshotIo::next(IoResult& result, bool wait) {
  if (in_flight_ == 0) return false;
  while (results_.empty()) {
    std::vector<IoCompletion> done;
    backend_->collect(done, wait);
    for (const IoCompletion& completion : done) settle(completion);
    if (backend_->fault().error != 0) change_to_plain();
    if (!wait && results_.empty()) return false;
  }
  result = std::move(results_.front());
  results_.pop_front();
  --in_flight_;
  return true;
}

void SnapshotIo::settle(const IoCompletion& completion) {
  Slot* slot = slot_of(completion.id);
  if (slot == nullptr) {
    ++stats_.strays;
    return;
  }
  IoRequest& request = slot->request;
  std::int64_t result = completion.result;
  const bool wrote_nothing = request.op == IoOp::write && result == 0 && request.size > 0;
  const bool nonsense = result > static_cast<std::int64_t>(request.size);
  if (on_ring_ && (result < 0 || wrote_nothing || nonsense)) {
    // Cancelled by a signal, an operation this kernel's ring lacks, no memory for it: only what the
    // plain call says is true of the file.
    ++stats_.repeated;
    result = transfer(request);
  }
  if (result < 0) return finish(*slot, static_cast<int>(-result));
  if (request.op == IoOp::sync) return finish(*slot, 0);
  const auto moved = static_cast<std::size_t>(result);
  slot->bytes += moved;
  (request.op == IoOp::read ? stats_.bytes_read : stats_.bytes_written) += moved;
  if (moved == request.size) return finish(*slot, 0);
  if (moved == 0) return finish(*slot, request.op == IoOp::read ? 0 : EIO);
  request.offset += moved;
  request.data += moved;
  request.size -= moved;
  ++stats_.continued;
  start(*slot);
}

void SnapshotIo::finish(Slot& slot, int error) {
  slot.busy = false;
  results_.push_back({slot.tag, std::move(slot.buffer), slot.bytes, error});
}

void SnapshotIo::change_to_plain() {
  stats_.ring_fault = backend_->fault();
  std::vector<IoCompletion> completed;
  const std::vector<std::uint64_t> held = backend_->release(completed);
  backend_ = make_plain_backend();
  stats_.backend = backend_->name();

  // What the kernel holds for ever is done again from another buffer: the same bytes at the same
  // place.
  for (const std::uint64_t id : held) {
    Slot* slot = slot_of(id);
    if (slot == nullptr || slot->buffer == nullptr) continue;
    IoBuffer fresh = take_buffer();
    std::memcpy(fresh.get(), slot->buffer.get(), kIoBufferBytes);
    slot->request.data = fresh.get() + (slot->request.data - slot->buffer.get());
    abandon(std::exchange(slot->buffer, std::move(fresh)));
  }
  std::vector<Slot*> unanswered;
  for (Slot& slot : slots_) {
    const auto is_of_slot = [&](const IoCompletion& c) { return c.id == slot.request.id; };
    if (slot.busy && std::none_of(completed.begin(), completed.end(), is_of_slot)) {
      unanswered.push_back(&slot);
    }
  }
  for (const IoCompletion& completion : completed) settle(completion);
  on_ring_ = false;  // not before: these were the ring's own answers
  for (Slot* slot : unanswered) {
    ++stats_.repeated;
    start(*slot);
  }
}

}  // namespace fingerpost
