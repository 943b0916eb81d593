#include "bench/bench_segment.h"

#include <algorithm>
#include <stdexcept>

#include "bench/machine.h"
#include "shm/boot_clock.h"

namespace fingerpost::bench {

std::vector<ShardSpec> shards() {
  std::vector<ShardSpec> specs(kShards);
  for (std::uint16_t i = 0; i < kShards; ++i) {
    specs[i].name = "shard-" + std::to_string(i);
    specs[i].primary = "10.0.0." + std::to_string(i) + ":5432";
  }
  return specs;
}

DirectoryId bench_directory() {
  return checked(Result<DirectoryId>(*parse_directory_id("0f000000-0000-4000-8000-00000000be0c")));
}

void check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

std::unique_ptr<OwnedSegment> make_segment(const std::string& path, std::uint64_t capacity,
                                           const DirectoryId& directory_id) {
  SegmentIdentity identity;
  identity.directory_id = directory_id;
  identity.plan = SegmentPlan::make(capacity);
  identity.boot_id = checked(current_boot_id());
  return checked(OwnedSegment::create(path, SegmentAccess::of_this_process(), identity));
}

void fill_segment(OwnedSegment& segment, const Contents& contents, std::uint64_t buckets) {
  auto& to = segment.writer();
  check(to.publish_topology(shards()));
  TableNeeds needs;
  needs.entries = contents.entries;
  needs.fallback_kind = buckets == 0 ? FallbackKind::none : FallbackKind::buckets;
  needs.fallback_count = buckets;
  check(to.begin_load(needs, mix(1), 1, false));
  for (std::uint64_t number = 0; number < contents.entries; ++number) {
    if (to.load(make_key(contents.shape, number), route_of(number)) != Applied::changed) {
      throw std::runtime_error("entry " + std::to_string(number) + " did not go into the table");
    }
  }
  for (std::uint64_t bucket = 0; bucket < buckets; ++bucket) {
    to.load_fallback(bucket, route_of(bucket));
  }
  to.switch_generation();
  to.publish({1, contents.entries + 1, 1, 0});
}

BenchSegment::BenchSegment(const Contents& contents, std::uint64_t buckets)
    : path_(folder_.file("fingerpost.bench")) {
  lock_ = std::make_unique<WriterLock>(
      checked(WriterLock::acquire(path_, SegmentAccess::of_this_process().owner)));
  // Room to grow by half.
  segment_ =
      make_segment(path_, std::max<std::uint64_t>(1'024, contents.entries + contents.entries / 2));
  fill_segment(*segment_, contents, buckets);
  check(segment_->publish_first());
}

}  // namespace fingerpost::bench
