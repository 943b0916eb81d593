#include "tools/demo_ledger.h"

#include <sys/mman.h>
#include <time.h>

#include <new>
#include <stdexcept>

namespace fingerpost::demo {

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Ledger::Ledger(std::size_t tenants) : count_(tenants) {
  const std::size_t bytes = sizeof(Board) + tenants * sizeof(Entry);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for the ledger");
  board_ = new (memory) Board;
  tenants_ = reinterpret_cast<Entry*>(static_cast<std::byte*>(memory) + sizeof(Board));
  for (std::size_t i = 0; i < tenants; ++i) new (&tenants_[i]) Entry;
}

}  // namespace fingerpost::demo
