// What may be an id. One rule for every door: resolve, import, the admin verbs, the syncer.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace fingerpost {

inline constexpr std::size_t kIdBytesMax = 255;
inline constexpr std::uint32_t kPartsMax = 1'024;
inline constexpr std::string_view kBucketPrefix = "bucket:";
inline constexpr std::string_view kPartPrefix = "part:";

// Why `id` is not an acceptable tenant id, as the end of a sentence ("is empty", "holds a control
// character (byte 3)"), or nullopt if it is: 1 to 255 bytes of valid UTF-8 without bytes below 0x20
// and 0x7F, outside the reserved prefixes "bucket:" and "part:". Compared byte for byte, never
// folded or trimmed.
std::optional<std::string_view> why_not_tenant_id(std::string_view id) noexcept;

// Whether the eight bytes at `bytes` are all printable ASCII, 0x20 to 0x7E: nearly every id is
// nothing else.
inline bool is_plain_word(const char* bytes) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHigh = 0x80 * kOnes;
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  // With the high bits clear, subtracting 0x20 borrows in a byte below 0x20 (and perhaps above one,
  // which then fails as well, rightly), and adding 1 carries into the high bit of 0x7F.
  return ((word | (word - 0x20 * kOnes) | (word + kOnes)) & kHigh) == 0;
}

// The quick look at the same: true only for a tenant id, false for some of them as well.
inline bool is_plain_tenant_id(std::string_view id) noexcept {
  if (id.size() < 8 || id.size() > kIdBytesMax) return false;
  const char* const last = id.data() + id.size() - 8;
  for (const char* at = id.data(); at < last; at += 8) {
    if (!is_plain_word(at)) return false;
  }
  return is_plain_word(last) && !id.starts_with(kBucketPrefix) && !id.starts_with(kPartPrefix);
}

// The same for an entry id as a directory row carries it: a tenant id, "bucket:N" or "part:K:ID".
std::optional<std::string_view> why_not_entry_id(std::string_view id) noexcept;

// N of "bucket:N" in canonical decimal (no sign, no leading zero); nullopt for anything else.
std::optional<std::uint32_t> bucket_of_entry_id(std::string_view id) noexcept;

bool is_utf8(std::string_view text) noexcept;  // well-formed, of any length

struct PartId {
  std::uint32_t part;
  std::string_view tenant;  // a view into the parsed id
};
// "part:K:ID" taken apart; nullopt unless K is canonical, below kPartsMax, and ID a tenant id.
std::optional<PartId> part_of_entry_id(std::string_view id) noexcept;

}  // namespace fingerpost
