// What may be an id. One rule for every door: resolve, import, the admin verbs, the syncer.
#pragma once

#include <cstdint>
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
