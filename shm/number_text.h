// Numbers as people read them in messages.
#pragma once

#include <cstdint>
#include <string>

namespace fingerpost {

// 84213760 as "84,213,760", whatever the locale.
std::string grouped(std::uint64_t value);

// Permission bits as "0640".
std::string mode_text(unsigned mode);

}  // namespace fingerpost
