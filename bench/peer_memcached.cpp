// memcached over a unix socket, the server on the other processor, asked through libmemcached as
// https://docs.memcached.org (unix socket: -s, one thread: -t 1) and libmemcached's
// memcached_server_add_unix_socket(3), memcached_get(3) and memcached_mget(3) describe; mget is its
// "batch". Sized so that nothing is evicted.
#include <fcntl.h>
#include <libmemcached/memcached.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "bench/machine.h"
#include "bench/scratch_folder.h"
#include "bench/subject.h"

namespace fingerpost::bench {
namespace {

class Server {
 public:
  Server(const std::string& socket, std::uint64_t megabytes) {
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("no fork for memcached");
    if (child_ == 0) {
      pin_to(other_cpu());
      const std::string size = std::to_string(megabytes);
      ::execlp(FINGERPOST_MEMCACHED, "memcached", "-u", "root", "-s", socket.c_str(), "-a", "0700",
               "-m", size.c_str(), "-t", "1", nullptr);
      ::_exit(127);
    }
    for (int i = 0; ::access(socket.c_str(), F_OK) != 0; ++i) {
      if (i == 500) throw std::runtime_error("memcached does not start");
      ::usleep(10'000);
    }
  }
  ~Server() {
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_ = -1;
};

class Memcached final : public Subject {
 public:
  explicit Memcached(const Contents& contents)
      : server_(folder_.file("socket"), 64 + contents.entries / 4'000),
        client_(memcached_create(nullptr)) {
    check(memcached_server_add_unix_socket(client_, folder_.file("socket").c_str()));
    check(memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_NOREPLY, 1));
    check(memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1));
    for (std::uint64_t number = 0; number < contents.entries; ++number) {
      const std::string id = make_key(contents.shape, number);
      const std::uint64_t answer = answer_of(number);
      const memcached_return_t done =
          memcached_set(client_, id.data(), id.size(), reinterpret_cast<const char*>(&answer),
                        sizeof answer, 0, 0);
      if (done != MEMCACHED_BUFFERED) check(done);
    }
    check(memcached_flush_buffers(client_));
    check(memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_NOREPLY, 0));
    check(memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 0));
  }
  ~Memcached() override { memcached_free(client_); }

  bool can(Way) const override { return true; }
  std::size_t questions_max() const override { return 300; }
  bool waits() const override { return true; }

  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t size) override {
    if (way == Way::batch) return ask_many(stream, first, last, size);
    return ask_one_by_one(
        way,
        [this](std::size_t, std::string_view id) -> std::uint64_t {
          std::size_t bytes = 0;
          std::uint32_t flags = 0;
          memcached_return_t code;
          char* value = memcached_get(client_, id.data(), id.size(), &bytes, &flags, &code);
          std::uint64_t answer = 0;
          if (value != nullptr && bytes == sizeof answer)
            std::memcpy(&answer, value, sizeof answer);
          std::free(value);
          return answer;
        },
        stream, first, last);
  }

 private:
  static void check(memcached_return_t code) {
    if (code != MEMCACHED_SUCCESS)
      throw std::runtime_error(std::string("memcached: ") + memcached_strerror(nullptr, code));
  }

  std::uint64_t ask_many(const Stream& stream, std::size_t first, std::size_t last,
                         std::size_t size) {
    std::array<const char*, 64> keys;
    std::array<std::size_t, 64> lengths;
    std::uint64_t sum = 0;
    for (std::size_t at = first; at < last; at += size) {
      const std::size_t count = std::min({size, last - at, keys.size()});
      for (std::size_t i = 0; i < count; ++i) {
        keys[i] = stream.ids()[at + i].data();
        lengths[i] = stream.ids()[at + i].size();
      }
      check(memcached_mget(client_, keys.data(), lengths.data(), count));
      memcached_return_t code;
      memcached_result_st result;
      memcached_result_create(client_, &result);
      while (memcached_fetch_result(client_, &result, &code) != nullptr) {
        std::uint64_t answer;
        std::memcpy(&answer, memcached_result_value(&result), sizeof answer);
        sum += answer;
      }
      memcached_result_free(&result);
    }
    return sum;
  }

  ScratchFolder folder_{kTmpfs};
  Server server_;
  memcached_st* client_;
};

const RegisterPeer kRegistered("memcached", [](const Contents& contents) {
  return std::make_unique<Memcached>(contents);
});

}  // namespace
}  // namespace fingerpost::bench
