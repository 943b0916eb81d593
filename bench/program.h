// What the mains of the benchmark programs share.
#pragma once

#include <exception>
#include <iostream>
#include <optional>
#include <string_view>

namespace fingerpost::bench {

inline constexpr std::string_view kScaleFlag = "--scale=";

// What the only argument, --scale=NAME, names: "quick" without one, nullopt (and the usage is on
// stderr) where there is anything else.
inline std::optional<std::string_view> scale_argument(std::string_view program, int argc,
                                                      char** argv) {
  if (argc == 1) return "quick";
  const std::string_view word = argv[1];
  if (argc == 2 && word.starts_with(kScaleFlag)) return word.substr(kScaleFlag.size());
  std::cerr << "usage: " << program << " [--scale=tiny|quick|full]\n";
  return std::nullopt;
}

// run(argc, argv); what it throws becomes a line on stderr and exit status 1.
template <class Run>
int run_main(std::string_view program, int argc, char** argv, Run&& run) {
  try {
    return run(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << program << ": " << failure.what() << '\n';
    return 1;
  }
}

}  // namespace fingerpost::bench
