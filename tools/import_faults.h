// What is wrong with the rows of an import, by line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fingerpost {

struct ImportFault {
  std::uint64_t line = 0;
  std::string message;

  bool operator==(const ImportFault&) const = default;
};

inline constexpr std::size_t kImportFaultsKept = 100;

// The first faults by line, and how many there are.
class ImportFaults {
 public:
  void add(std::uint64_t line, std::string message) {
    ++count_;
    kept_.push_back({line, std::move(message)});
    if (kept_.size() >= 2 * kImportFaultsKept) cut();
  }

  bool empty() const noexcept { return count_ == 0; }
  std::uint64_t count() const noexcept { return count_; }

  // The first kImportFaultsKept, in the order of their lines.
  std::vector<ImportFault> take() {
    cut();
    return std::move(kept_);
  }

 private:
  void cut() {
    std::stable_sort(kept_.begin(), kept_.end(),
                     [](const ImportFault& a, const ImportFault& b) { return a.line < b.line; });
    if (kept_.size() > kImportFaultsKept) kept_.resize(kImportFaultsKept);
  }

  std::uint64_t count_ = 0;
  std::vector<ImportFault> kept_;
};

}  // namespace fingerpost
