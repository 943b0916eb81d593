// Which directory: a UUID drawn at `fingerpost init`, never reused.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fingerpost {

using DirectoryId = std::array<std::uint8_t, 16>;

// The canonical text of an RFC 4122 UUID, lower case, and back; nullopt for anything else.
std::string to_string(const DirectoryId& id);
std::optional<DirectoryId> parse_directory_id(std::string_view text);

}  // namespace fingerpost
