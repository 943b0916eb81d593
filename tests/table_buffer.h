// One generation of the table in plain memory, of exactly the bytes it needs: a sanitizer sees
// every step outside.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "shm/table_writer.h"

namespace fingerpost {

class TableBuffer {
 public:
  explicit TableBuffer(const Geometry& geometry, std::uint64_t seed = 1)
      : bytes_(static_cast<std::byte*>(
            std::aligned_alloc(kLineBytes, Geometry::align_line(geometry.bytes())))),
        writer_(make(bytes_.get(), geometry, seed)) {}

  TableWriter<StdAtomics>& writer() { return writer_; }
  const Generation<StdAtomics, true>& bytes() const { return writer_.generation(); }

  // Another writer over the same bytes, as a restarted syncer is.
  TableWriter<StdAtomics>& restart() {
    writer_ = TableWriter<StdAtomics>(writer_.generation());
    return writer_;
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  static TableWriter<StdAtomics> make(std::byte* bytes, const Geometry& geometry,
                                      std::uint64_t seed) {
    // Not zeroes: a half that is used again holds anything.
    std::memset(bytes, 0xA5, Geometry::align_line(geometry.bytes()));
    return TableWriter<StdAtomics>::initialise(bytes, geometry, FallbackKind::none, seed, 1, 1);
  }

  std::unique_ptr<std::byte, Free> bytes_;
  TableWriter<StdAtomics> writer_;
};

inline RouteFields active(std::uint16_t shard, std::uint64_t epoch) {
  return {State::active, shard, kNoShard, epoch};
}

}  // namespace fingerpost
