// The two hashes of an id, and the digest of stored bytes. The only file that knows xxHash.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fingerpost {

// Decides placement: bucket, part of a split tenant, hash fallback, wait word. Unseeded XXH3-64 of
// the exact bytes (https://github.com/Cyan4973/xxHash), fixed for ever.
inline std::uint64_t placement_hash(std::string_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

// Decides where an entry lies in one generation of the table: XXH3-64 with that generation's seed.
// It promises bounded probes, not collision resistance.
inline std::uint64_t index_hash(std::string_view bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

// Guards stored bytes against cuts and flips: unseeded XXH3-64. Not a signature.
inline std::uint64_t content_digest(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace fingerpost
