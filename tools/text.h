// Text for people: what came from outside, made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace fingerpost {

// `text` in single quotes; control characters and bytes that are not UTF-8 as \xNN; cut after about
// 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace fingerpost
