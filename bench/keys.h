// Tenant ids as a function of their number: the same ones in every run, none of them stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fingerpost::bench {

enum class KeyShape : std::uint8_t { uuid, slug, domain, number };

inline constexpr KeyShape kKeyShapes[] = {KeyShape::uuid, KeyShape::slug, KeyShape::domain,
                                          KeyShape::number};

std::string_view to_string(KeyShape shape);

// The id of tenant `number`; ids of different numbers below 2^48 differ.
std::string make_key(KeyShape shape, std::uint64_t number);

// Numbers from here on are of tenants that nobody has entered.
inline constexpr std::uint64_t kAbsentFrom = std::uint64_t{1} << 40;

// A step of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators"):
// a bijection, so that different numbers stay different.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace fingerpost::bench
