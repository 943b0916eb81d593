#include "bench/unordered_map_bench.h"

#include <stdexcept>

#include "bench/machine.h"
#include "shm/hash.h"

namespace fingerpost::bench {

BucketComparison::BucketComparison() : reader_(checked(Reader::open(segment_.path()))) {
  for (std::size_t i = 0; i < kTenants; ++i) {
    ids_.push_back(make_key(KeyShape::uuid, kAbsentFrom + i));
    map_.emplace(ids_.back(), static_cast<int>(answer_of(placement_hash(ids_.back()) % kBuckets)));
  }
  for (std::size_t i = 0; i < kQuestions; ++i) {
    questions_.push_back(&ids_[mix(i) % kTenants]);
    sum_ += answer_of(placement_hash(*questions_.back()) % kBuckets);
  }
}

template <class Lookup>
double BucketComparison::time(Lookup&& lookup) const {
  std::uint64_t sum = 0;
  const std::int64_t begin = thread_ns();
  for (const std::string* id : questions_) sum += lookup(*id);
  const std::int64_t end = thread_ns();
  if (sum != sum_) throw std::runtime_error("a wrong answer among the buckets'");
  return static_cast<double>(end - begin) / static_cast<double>(kQuestions);
}

double BucketComparison::ours() {
  return time([this](const std::string& id) {
    const Route route = reader_.resolve(id);
    return route.source() == RouteSource::bucket ? route.epoch() : 0;
  });
}

double BucketComparison::unordered_map() {
  return time([this](const std::string& id) {
    const auto found = map_.find(id);
    return found == map_.end() ? std::uint64_t{0} : static_cast<std::uint64_t>(found->second);
  });
}

}  // namespace fingerpost::bench
