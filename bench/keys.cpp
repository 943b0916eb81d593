#include "bench/keys.h"

#include <fmt/format.h>

namespace fingerpost::bench {

std::string_view to_string(KeyShape shape) {
  switch (shape) {
    case KeyShape::uuid:
      return "uuid";
    case KeyShape::slug:
      return "slug";
    case KeyShape::domain:
      return "domain";
    case KeyShape::number:
      return "number";
  }
  return "uuid";
}

std::string make_key(KeyShape shape, std::uint64_t number) {
  static constexpr std::string_view kWords[] = {"acme",  "blue",   "corner",  "delta",
                                                "ember", "forest", "granite", "harbour"};
  const std::uint64_t high = mix(number);
  const std::uint64_t low = mix(high);
  switch (shape) {
    case KeyShape::uuid:
      return fmt::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", high >> 32, high >> 16 & 0xFFFF,
                         high & 0xFFF, low >> 52, number & 0xFFFF'FFFF'FFFF);
    case KeyShape::slug:
      return fmt::format("{}-{}-{:x}", kWords[high % 8], kWords[low % 8], number);
    case KeyShape::domain:
      return fmt::format("{}{:x}.{}.example.com", kWords[high % 8], number, kWords[low % 8]);
    case KeyShape::number:
      return fmt::format("{}", 1'000'000'000 + number);
  }
  return {};
}

}  // namespace fingerpost::bench
