// A tenant without an entry of its own, found through its bucket, beside the smallest thing that
// could stand there: a std::unordered_map<std::string, int> of just these tenants.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/subject_fingerpost.h"

namespace fingerpost::bench {

class BucketComparison {
 public:
  BucketComparison();

  // Nanoseconds per lookup of one pass over all questions. Throws if an answer is wrong.
  double ours();
  double unordered_map();

 private:
  static constexpr std::uint64_t kOverrides = 10'000;
  static constexpr std::uint64_t kBuckets = 4'096;
  static constexpr std::size_t kTenants = 256;
  static constexpr std::size_t kQuestions = 100'000;

  template <class Lookup>
  double time(Lookup&& lookup) const;

  BenchSegment segment_{{KeyShape::uuid, kOverrides}, kBuckets};
  Reader reader_;
  std::vector<std::string> ids_;
  std::unordered_map<std::string, int> map_;
  std::vector<const std::string*> questions_;
  std::uint64_t sum_ = 0;
};

}  // namespace fingerpost::bench
