#include "tools/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fingerpost {
namespace {

constexpr std::uint64_t kBarColumns = 40;
constexpr std::chrono::milliseconds kRedrawInterval{100};
constexpr const char* kWipe = "\r\x1b[K";  // to the line's begin, erase to its end

}  // namespace

ProgressBar::ProgressBar(bool wanted) : drawing_(wanted && isatty(STDERR_FILENO) == 1) {}

void ProgressBar::clear() {
  if (drawn_) std::fputs(kWipe, stderr);
  drawn_ = false;
}

void ProgressBar::show(const char* what, std::uint64_t done, std::uint64_t total,
                       const char* unit) {
  if (!drawing_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kRedrawInterval;
  drawn_ = true;
  std::string line = fmt::format("{}{:<9}", kWipe, what);
  if (total != 0) {
    const std::uint64_t filled = std::min(kBarColumns, done * kBarColumns / total);
    line += fmt::format("[{:=<{}}{:<{}}] {:>3} % ", "", filled, "", kBarColumns - filled,
                        std::min<std::uint64_t>(100, done * 100 / total));
  }
  line += fmt::format("{} {}", done, unit);
  std::fputs(line.c_str(), stderr);
}

}  // namespace fingerpost
