#include "bench/machine.h"

#include <sched.h>
#include <sys/mman.h>

#include <stdexcept>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // since Linux 6.1; Debian 12's libc does not name it
#endif

namespace fingerpost::bench {
namespace {

// As the process was started: pinning changes what the kernel says later.
const cpu_set_t& allowed() {
  static const cpu_set_t at_start = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }();
  return at_start;
}

}  // namespace

int measured_cpu() {
  for (int cpu = CPU_SETSIZE - 1; cpu > 0; --cpu) {
    if (CPU_ISSET(cpu, &allowed())) return cpu;
  }
  return 0;
}

int other_cpu() {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed())) return cpu;
  }
  return 0;
}

void pin_to(int cpu) {
  allowed();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) throw std::runtime_error("cannot pin");
}

std::size_t collapse(const void* begin, std::size_t bytes) {
  constexpr std::uintptr_t kHuge = kHugePageBytes;
  const auto from = (reinterpret_cast<std::uintptr_t>(begin) + kHuge - 1) / kHuge * kHuge;
  const auto to = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / kHuge * kHuge;
  std::size_t done = 0;
  for (std::uintptr_t at = from; at < to; at += kHuge) {
    if (::madvise(reinterpret_cast<void*>(at), kHuge, MADV_COLLAPSE) == 0) done += kHuge;
  }
  return done;
}

}  // namespace fingerpost::bench
