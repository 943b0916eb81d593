// The daemon's log: one line per event to standard error, equal causes counted instead of repeated.
// What is no printable character never reaches the line as it is.
//
// One thread; never called from a signal handler.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fingerpost {

class Log {
 public:
  enum class Level : std::uint8_t { info, warning, error };
  enum class Format : std::uint8_t { text, json };

  // Of all that this process logs: what is below `least` is left out. Text until this is called.
  void configure(Format format, Level least);

  // At once, always: for what happens rarely by its nature.
  void info(std::string_view text);
  void warning(std::string_view text);
  void error(std::string_view text);

  // For what may repeat: of one `cause`, a line at once, then at most one every kRepeatEvery, with
  // how many there were since. `cause` is a name of ours, never outside input: the set of causes is
  // bounded.
  void limited(Level level, std::string_view cause, std::string_view text);

 private:
  static constexpr std::chrono::seconds kRepeatEvery{30};

  struct Cause {
    std::chrono::steady_clock::time_point next;
    std::uint64_t held_back = 0;
  };

  std::map<std::string, Cause, std::less<>> causes_;
};

}  // namespace fingerpost
