// A line on a terminal that says how far something is, at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fingerpost {

class ProgressBar {
 public:
  // Draws on stderr if that is a terminal and `wanted`; else does nothing.
  explicit ProgressBar(bool wanted);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `total` 0: not known, only `done` is shown.
  void show(const char* what, std::uint64_t done, std::uint64_t total, const char* unit);
  void clear();  // wipes the line

 private:
  bool drawing_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace fingerpost
