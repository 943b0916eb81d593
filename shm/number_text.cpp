#include "shm/number_text.h"

namespace fingerpost {

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string mode_text(unsigned mode) {
  std::string text = "0000";
  for (std::size_t i = 4; i-- > 0; mode >>= 3) text[i] = static_cast<char>('0' + (mode & 7U));
  return text;
}

}  // namespace fingerpost
