#include "tools/text.h"

#include <fmt/format.h>

#include "shm/tenant_id.h"

namespace fingerpost {
namespace {

constexpr std::size_t kBytesShownMax = 80;

}  // namespace

std::string in_quotes(std::string_view text) {
  const bool utf8 = is_utf8(text);
  std::string shown = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool inside_sequence = utf8 && byte >= 0x80 && byte < 0xC0;
    if (i >= kBytesShownMax && !inside_sequence) {
      shown += "…";
      break;
    }
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += text[i];
    }
  }
  return shown + "'";
}

}  // namespace fingerpost
