// Small files of text as the kernel shows them under /proc and /sys, and the numbers in them.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fingerpost {

// The whole file, whatever its size says; nullopt if it cannot be read.
std::optional<std::string> read_text_file(const std::string& path);

// `text` cut at each `separator`, empty fields left out. Views into `text`.
std::vector<std::string_view> fields_of(std::string_view text, char separator);

// The decimal number that `text` begins with, after blanks; nullopt if there is none or it has no
// room in 64 bits.
std::optional<std::uint64_t> number_in(std::string_view text);

// The number on the line that begins with `key`, then a colon or not, then blanks, as in
// "inactive_file 4096" and "MemAvailable:   1024 kB".
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view key);

}  // namespace fingerpost
