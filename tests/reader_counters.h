// What a worker reads of the segment's counters.
#pragma once

#include <cstdint>

#include "reader/reader.h"
#include "shm/counters.h"

namespace fingerpost {

inline std::uint64_t count_of(const Reader& worker, Counter which) {
  return worker.status().counters[static_cast<std::size_t>(which)];
}

}  // namespace fingerpost
