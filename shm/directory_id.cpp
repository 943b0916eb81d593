#include "shm/directory_id.h"

namespace fingerpost {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

constexpr bool dash_before_byte(std::size_t i) {
  return i == 4 || i == 6 || i == 8 || i == 10;
}

}  // namespace

std::string to_string(const DirectoryId& id) {
  std::string text;
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (dash_before_byte(i)) text += '-';
    text += kHex[id[i] >> 4];
    text += kHex[id[i] & 15];
  }
  return text;
}

std::optional<DirectoryId> parse_directory_id(std::string_view text) {
  DirectoryId id{};
  std::size_t at = 0;
  const auto nibble = [&]() -> int {
    if (at >= text.size()) return -1;
    const std::size_t digit = kHex.find(text[at++]);
    return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
  };
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (dash_before_byte(i) && (at >= text.size() || text[at++] != '-')) return std::nullopt;
    const int high = nibble();
    const int low = nibble();
    if (high < 0 || low < 0) return std::nullopt;
    id[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  if (at != text.size()) return std::nullopt;
  return id;
}

}  // namespace fingerpost
