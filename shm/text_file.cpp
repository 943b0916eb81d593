#include "shm/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "shm/unique_fd.h"

namespace fingerpost {

std::optional<std::string> read_text_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

std::vector<std::string_view> fields_of(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    if (end != 0) fields.push_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return fields;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return std::nullopt;
  text.remove_prefix(begin);
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key) {
  for (std::string_view line : fields_of(text, '\n')) {
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    if (line.starts_with(' ') || line.starts_with('\t')) return number_in(line);
  }
  return std::nullopt;
}

}  // namespace fingerpost
