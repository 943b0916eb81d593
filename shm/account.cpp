#include "shm/account.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

namespace fingerpost {
namespace {

constexpr std::size_t kRecordBytesMax = 1 << 20;  // a group with very many members

// The highest id means "leave as it is" to chown, so it is nobody's.
std::optional<std::uint32_t> id_of(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  if (value == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return value;
}

// Calls one of the getXXnam_r family with a buffer that grows until the record fits.
template <class Record, class Key, class Call>
bool look_up(Call call, Key key, Record& record, std::vector<char>& buffer) {
  for (buffer.resize(1024); buffer.size() <= kRecordBytesMax; buffer.resize(buffer.size() * 2)) {
    Record* found = nullptr;
    const int error = call(key, &record, buffer.data(), buffer.size(), &found);
    if (error == 0) return found != nullptr;
    if (error != ERANGE && error != EINTR) return false;
  }
  return false;
}

}  // namespace

Result<uid_t> user_id(std::string_view text) {
  if (const auto id = id_of(text)) return *id;
  const std::string name(text);
  passwd record{};
  std::vector<char> buffer;
  if (!name.empty() && look_up(::getpwnam_r, name.c_str(), record, buffer)) return record.pw_uid;
  return Status(Code::refused, "no user is named '" + name + "'");
}

Result<gid_t> group_id(std::string_view text) {
  if (const auto id = id_of(text)) return *id;
  const std::string name(text);
  group record{};
  std::vector<char> buffer;
  if (!name.empty() && look_up(::getgrnam_r, name.c_str(), record, buffer)) return record.gr_gid;
  return Status(Code::refused, "no group is named '" + name + "'");
}

std::string user_text(uid_t user) {
  passwd record{};
  std::vector<char> buffer;
  const std::string id = "uid " + std::to_string(user);
  if (!look_up(::getpwuid_r, user, record, buffer)) return id;
  return std::string(record.pw_name) + " (" + id + ")";
}

}  // namespace fingerpost
