// Sixteen fingerprints at once. The vectors are made from loaded values, never by loading shared
// memory. Three forms, chosen by the target; all compute the same (tests/group_scan_test.cpp).
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace fingerpost {

inline constexpr std::uint8_t kFingerprintEmpty = 0;  // never used in this generation: ends a probe
inline constexpr std::uint8_t kFingerprintVacant =
    1;  // may be used again; never becomes empty again
constexpr bool is_live(std::uint8_t fingerprint) noexcept {
  return (fingerprint & 0x80) != 0;
}

// The positions 0 to 15 whose byte equals `byte`, one bit each. `low` holds positions 0 to 7, byte
// by byte from the least significant.
inline std::uint32_t scan_portable(std::uint64_t low, std::uint64_t high,
                                   std::uint8_t byte) noexcept {
  constexpr std::uint64_t kSeven = 0x7F7F7F7F7F7F7F7F;
  const auto zero_bytes = [](std::uint64_t x) {  // exact: 0x80 in each byte that is 0
    return ~(((x & kSeven) + kSeven) | x | kSeven);
  };
  const auto gather = [](std::uint64_t marks) {  // the eight marks as eight bits
    return static_cast<std::uint32_t>((marks >> 7) * 0x0102040810204080 >> 56);
  };
  constexpr std::uint64_t kOnes = 0x0101010101010101;  // unsigned: the product may wrap
  const std::uint64_t pattern = kOnes * byte;
  return gather(zero_bytes(low ^ pattern)) | gather(zero_bytes(high ^ pattern)) << 8;
}

#if defined(__SSE2__)
inline std::uint32_t scan_vector(std::uint64_t low, std::uint64_t high,
                                 std::uint8_t byte) noexcept {
  const __m128i group = _mm_set_epi64x(static_cast<long long>(high), static_cast<long long>(low));
  const __m128i equal = _mm_cmpeq_epi8(group, _mm_set1_epi8(static_cast<char>(byte)));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(equal));
}
#elif defined(__ARM_NEON) && defined(__aarch64__)
inline std::uint32_t scan_vector(std::uint64_t low, std::uint64_t high,
                                 std::uint8_t byte) noexcept {
  const uint8x16_t group = vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
  const uint8x16_t equal = vceqq_u8(group, vdupq_n_u8(byte));
  constexpr std::uint64_t kBits = 0x8040201008040201;
  const uint8x16_t bits =
      vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(kBits), vcreate_u64(kBits)));
  const uint8x16_t marked = vandq_u8(equal, bits);
  return static_cast<std::uint32_t>(vaddv_u8(vget_low_u8(marked))) |
         static_cast<std::uint32_t>(vaddv_u8(vget_high_u8(marked))) << 8;
}
#else
inline std::uint32_t scan_vector(std::uint64_t low, std::uint64_t high,
                                 std::uint8_t byte) noexcept {
  return scan_portable(low, high, byte);
}
#endif

// Takes the lowest position out of a non-zero mask.
inline unsigned pop_lowest(std::uint32_t& mask) noexcept {
  const auto position = static_cast<unsigned>(std::countr_zero(mask));
  mask &= mask - 1;
  return position;
}

}  // namespace fingerpost
