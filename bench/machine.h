// The machine underneath: where this process runs, how large its pages are, what time it is.
#pragma once

#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace fingerpost::bench {

// The last processor this process may use, where the subject under measurement runs; and the first,
// for whoever else takes part (the same one on a machine that has only one).
int measured_cpu();
int other_cpu();
void pin_to(int cpu);

inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Asks for huge pages under [begin, begin + bytes), whatever of it is aligned. How many bytes of it
// are mapped by huge pages afterwards.
std::size_t collapse(const void* begin, std::size_t bytes);

inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What this thread has computed for. Unlike the clock on the wall it stands still while somebody
// else has the processor, so that a busy machine disturbs it less.
inline std::int64_t thread_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace fingerpost::bench
