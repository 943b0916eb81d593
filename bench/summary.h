// Medians, of values and of ratios of neighbours in time. A pair of which one side did not come to
// its turn counts for nothing.
#pragma once

#include <algorithm>
#include <vector>

namespace fingerpost::bench {

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

inline double median_ratio(const std::vector<double>& over, const std::vector<double>& under) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(over.size(), under.size()); ++i) {
    if (over[i] != 0 && under[i] != 0) ratios.push_back(over[i] / under[i]);
  }
  return median(std::move(ratios));
}

}  // namespace fingerpost::bench
