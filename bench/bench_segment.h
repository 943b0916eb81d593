// A real segment on tmpfs, filled through the writer that ships. The process that made it owns it;
// children may go on reading it by its path. Throws where it cannot be had.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/scratch_folder.h"
#include "bench/subject.h"
#include "shm/owned_segment.h"

namespace fingerpost::bench {

inline constexpr std::uint16_t kShards = 64;

constexpr std::uint16_t shard_of(std::uint64_t number) {
  return static_cast<std::uint16_t>(mix(number) % kShards);
}

// Entry `number` as the segment holds it: its epoch is its answer.
constexpr RouteFields route_of(std::uint64_t number) {
  return {State::active, shard_of(number), kNoShard, answer_of(number)};
}

std::vector<ShardSpec> shards();
DirectoryId bench_directory();

// Throws what a Status says.
void check(const Status& status);
template <class T>
T checked(Result<T> result) {
  check(result.status());
  return std::move(*result);
}

class BenchSegment {
 public:
  // `buckets`: besides the entries, that many fallback words, bucket b with the route of number b.
  explicit BenchSegment(const Contents& contents, std::uint64_t buckets = 0);

  const std::string& path() const { return path_; }
  SegmentWriter<StdAtomics>& writer() { return segment_->writer(); }
  OwnedSegment& segment() { return *segment_; }

 private:
  ScratchFolder folder_{kTmpfs};
  std::string path_;
  std::unique_ptr<WriterLock> lock_;
  std::unique_ptr<OwnedSegment> segment_;
};

// An empty segment at `path`, as the syncer makes it.
std::unique_ptr<OwnedSegment> make_segment(const std::string& path, std::uint64_t capacity,
                                           const DirectoryId& directory_id = bench_directory());
// Loads it, as its first generation. `buckets` as for BenchSegment.
void fill_segment(OwnedSegment& segment, const Contents& contents, std::uint64_t buckets);

}  // namespace fingerpost::bench
