#include "shm/tenant_id.h"

#include <charconv>
#include <cstring>

namespace fingerpost {
namespace {

// Length of the well-formed UTF-8 sequence that begins at `at` (Unicode 15, table 3-7), 0 if there
// is none.
std::size_t utf8_sequence(std::string_view s, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) {
    return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0U;
  };
  const auto in = [](unsigned b, unsigned low, unsigned high) { return low <= b && b <= high; };
  const unsigned b0 = byte(0);
  if (b0 < 0x80) return 1;
  if (in(b0, 0xC2, 0xDF)) return in(byte(1), 0x80, 0xBF) ? 2 : 0;
  if (in(b0, 0xE0, 0xEF)) {
    const unsigned low = b0 == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = b0 == 0xED ? 0x9F : 0xBF;  // no surrogates
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xBF) ? 3 : 0;
  }
  if (in(b0, 0xF0, 0xF4)) {
    const unsigned low = b0 == 0xF0 ? 0x90 : 0x80;
    const unsigned high = b0 == 0xF4 ? 0x8F : 0xBF;
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xBF) && in(byte(3), 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::optional<std::string_view> why_not_id_bytes(std::string_view id) noexcept {
  if (id.empty()) return "is empty";
  if (id.size() > kIdBytesMax) return "is longer than 255 bytes";
  for (std::size_t i = 0; i < id.size();) {
    if (id.size() - i >= 8 && is_plain_word(id.data() + i)) {
      i += 8;
      continue;
    }
    const auto b = static_cast<unsigned char>(id[i]);
    if (b < 0x20 || b == 0x7F) return "holds a control character";
    const std::size_t length = utf8_sequence(id, i);
    if (length == 0) return "is not valid UTF-8";
    i += length;
  }
  return std::nullopt;
}

// Canonical decimal: no sign, no leading zero, no overflow.
std::optional<std::uint32_t> canonical_number(std::string_view text) noexcept {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string_view> why_not_tenant_id(std::string_view id) noexcept {
  if (const auto why = why_not_id_bytes(id)) return why;
  if (id.starts_with(kBucketPrefix)) return "begins with the reserved prefix 'bucket:'";
  if (id.starts_with(kPartPrefix)) return "begins with the reserved prefix 'part:'";
  return std::nullopt;
}

std::optional<std::string_view> why_not_entry_id(std::string_view id) noexcept {
  if (id.starts_with(kPartPrefix)) {
    // The tenant's id may have all its 255 bytes.
    if (part_of_entry_id(id)) return std::nullopt;
    return "is not 'part:K:ID' with K below 1024 and ID a tenant id";
  }
  if (const auto why = why_not_id_bytes(id)) return why;
  if (id.starts_with(kBucketPrefix) && !bucket_of_entry_id(id)) {
    return "is not 'bucket:N' with N in plain decimal";
  }
  return std::nullopt;
}

std::optional<std::uint32_t> bucket_of_entry_id(std::string_view id) noexcept {
  if (!id.starts_with(kBucketPrefix)) return std::nullopt;
  return canonical_number(id.substr(kBucketPrefix.size()));
}

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_sequence(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::optional<PartId> part_of_entry_id(std::string_view id) noexcept {
  if (!id.starts_with(kPartPrefix)) return std::nullopt;
  const std::string_view rest = id.substr(kPartPrefix.size());
  const std::size_t colon = rest.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto part = canonical_number(rest.substr(0, colon));
  const std::string_view tenant = rest.substr(colon + 1);
  if (!part || *part >= kPartsMax || why_not_tenant_id(tenant)) return std::nullopt;
  return PartId{*part, tenant};
}

}  // namespace fingerpost
