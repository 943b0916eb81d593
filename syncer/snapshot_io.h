// Moves snapshot files between disk and a few large buffers, many requests at a time.
//
// A backend hands requests to the kernel: io_uring where it can be had (syncer/uring_io.h), else a
// thread that calls pread, pwrite and fsync. SnapshotIo owns the buffers and is the only one who
// judges what came back: it matches completions by id, continues short ones, asks the kernel
// plainly before it believes an error of the ring, and moves everything to the plain backend when
// the ring fails. Which backend it was, how deep it went and which errno stood in the way is in
// IoStats.
//
// One thread owns a SnapshotIo. Nothing here throws, except for memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fingerpost {

enum class IoOp : std::uint8_t { read, write, sync };

struct IoRequest {
  std::uint64_t id = 0;
  IoOp op = IoOp::read;
  int fd = -1;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
  std::size_t size = 0;
};

struct IoCompletion {
  std::uint64_t id = 0;
  std::int64_t result = 0;  // bytes, or -errno
};

// Which system call refused, and why. error is 0 where nothing did.
struct IoFault {
  std::string_view call;
  int error = 0;
};

// Does one request by system call, repeated on EINTR. Bytes (of a sync: 0), or -errno.
std::int64_t transfer(const IoRequest& request) noexcept;

class IoBackend {
 public:
  virtual ~IoBackend() = default;

  // Static lifetime.
  virtual std::string_view name() const = 0;
  // The request's buffer belongs to the backend until its id comes back, or until release().
  virtual void start(const IoRequest& request) = 0;
  // Appends what was completed, in any order; with `wait` sleeps until there is something to
  // append, or until a fault. Never called with `wait` while nothing is in flight.
  virtual void collect(std::vector<IoCompletion>& done, bool wait) = 0;
  // Where error is not 0, nothing more is started or collected: release() is next.
  virtual IoFault fault() const { return {}; }
  // Lets go of everything. Appends what was completed until then; returns the ids of requests whose
  // buffer the kernel may still touch. Any other request was not begun, and will not be.
  virtual std::vector<std::uint64_t> release(std::vector<IoCompletion>& done) = 0;
};

// pread, pwrite and fsync on a thread of its own, so that the owner never waits for a disk unasked;
// on the owner's thread where no other can be had.
std::unique_ptr<IoBackend> make_plain_backend();

enum class IoChoice : std::uint8_t { automatic, plain };

struct IoOptions {
  IoChoice choice = IoChoice::automatic;
  unsigned depth = 8;  // requests in flight, and buffers of kIoBufferBytes; 1 to kIoDepthMax
};

inline constexpr std::size_t kIoBufferBytes = 1 << 20;
inline constexpr unsigned kIoDepthMax = 64;

struct IoStats {
  std::string_view backend;  // the one in use at the end: "io_uring" or "plain"
  unsigned depth_reached = 0;
  std::uint64_t requests = 0;
  std::uint64_t continued = 0;  // short completions, whose rest was asked for again
  std::uint64_t repeated =
      0;                     // requests done plainly after the ring's completion or the ring failed
  std::uint64_t strays = 0;  // completions of no request of ours: ignored
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  IoFault ring_fault;  // why the ring is not in use: the call and its errno
};

// A buffer of kIoBufferBytes, page-aligned.
struct IoBufferDelete {
  void operator()(std::byte* buffer) const noexcept;
};
using IoBuffer = std::unique_ptr<std::byte[], IoBufferDelete>;

struct IoResult {
  std::uint64_t tag = 0;
  IoBuffer buffer;        // the caller's again; not the one submitted where the kernel kept that
  std::size_t bytes = 0;  // fewer than asked for only at the end of a file, or with an error
  int error = 0;          // errno
};

class SnapshotIo {
 public:
  explicit SnapshotIo(const IoOptions& options);
  // Over a backend of the caller's choice, that takes `depth` requests at a time.
  SnapshotIo(unsigned depth, std::unique_ptr<IoBackend> backend);
  // Waits for what is in flight.
  ~SnapshotIo();
  SnapshotIo(const SnapshotIo&) = delete;
  SnapshotIo& operator=(const SnapshotIo&) = delete;

  unsigned depth() const { return static_cast<unsigned>(slots_.size()); }
  // Requests submitted whose result next() has not given yet; submit() needs fewer than depth().
  unsigned in_flight() const { return in_flight_; }

  // A buffer to fill or to read into, and its way back for the next who asks.
  IoBuffer take_buffer();
  void give_back(IoBuffer buffer);

  // `size` is at most kIoBufferBytes. `tag` comes back with the result.
  void read(std::uint64_t tag, int fd, std::uint64_t offset, IoBuffer buffer, std::size_t size);
  void write(std::uint64_t tag, int fd, std::uint64_t offset, IoBuffer buffer, std::size_t size);
  void sync(std::uint64_t tag, int fd);

  // Takes one result into `result`. false: none is there (without `wait`), or nothing is in flight.
  bool next(IoResult& result, bool wait);

  const IoStats& stats() const { return stats_; }

 private:
  struct Slot {
    IoRequest request;  // what is left to do
    IoBuffer buffer;
    std::uint64_t tag = 0;
    std::size_t bytes = 0;  // done so far
    bool busy = false;
  };

  void submit(std::uint64_t tag, IoRequest request, IoBuffer buffer);
  void start(Slot& slot);
  Slot* slot_of(std::uint64_t id);
  void settle(const IoCompletion& completion);
  void finish(Slot& slot, int error);
  void change_to_plain();

  std::vector<Slot> slots_;
  std::unique_ptr<IoBackend> backend_;
  std::deque<IoResult> results_;
  std::vector<IoBuffer> spare_;
  std::uint64_t starts_ = 0;
  unsigned in_flight_ = 0;
  bool on_ring_;
  IoStats stats_;
};

}  // namespace fingerpost
