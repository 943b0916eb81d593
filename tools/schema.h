// The text of tools/schema.sql, compiled in. Static lifetime.
#pragma once

#include <cstdint>
#include <string_view>

namespace fingerpost {

inline constexpr std::uint32_t kSchemaVersion = 1;

extern const std::string_view kSchemaSql;

}  // namespace fingerpost
