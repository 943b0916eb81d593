#include "bench/stream.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>

namespace fingerpost::bench {
namespace {

// Ranks by Zipf's law, by the approximation of Gray et al., "Quickly generating billion-record
// synthetic databases" (SIGMOD 1994). Ranks are scattered over the entries.
class ZipfNumbers {
 public:
  explicit ZipfNumbers(std::uint64_t entries) : entries_(entries) {
    for (std::uint64_t i = 1; i <= entries; ++i)
      zeta_ += 1 / std::pow(static_cast<double>(i), kExponent);
    const double zeta_of_two = 1 + std::pow(0.5, kExponent);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(entries), 1 - kExponent)) /
           (1 - zeta_of_two / zeta_);
  }

  std::uint64_t draw(std::mt19937_64& random) const {
    const double u = std::uniform_real_distribution<double>()(random);
    const double rank =
        static_cast<double>(entries_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kExponent));
    return mix(static_cast<std::uint64_t>(rank)) % entries_;
  }

 private:
  static constexpr double kExponent = 0.99;
  std::uint64_t entries_;
  double zeta_ = 0;
  double eta_ = 0;
};

}  // namespace

std::string_view to_string(Mix mix) {
  switch (mix) {
    case Mix::hit:
      return "hit";
    case Mix::miss:
      return "miss";
    case Mix::zipf:
      return "zipf";
  }
  return "hit";
}

Stream::Stream(KeyShape shape, std::uint64_t entries, std::uint64_t questions, Mix mix,
               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const ZipfNumbers zipf(mix == Mix::zipf ? entries : 1);
  std::string text;
  std::vector<std::size_t> ends;
  sums_.push_back(0);
  for (std::uint64_t i = 0; i < questions; ++i) {
    const std::uint64_t number = mix == Mix::zipf ? zipf.draw(random) : random() % entries;
    numbers_.push_back(mix == Mix::miss ? kAbsentFrom + number : number);
    sums_.push_back(sums_.back() + (mix == Mix::miss ? 0 : answer_of(number)));
    text += make_key(shape, numbers_.back());
    ends.push_back(text.size());
  }
  bytes_ = std::make_unique<char[]>(text.size());
  std::memcpy(bytes_.get(), text.data(), text.size());
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    ids_.emplace_back(bytes_.get() + begin, end - begin);
    begin = end;
  }
}

}  // namespace fingerpost::bench
