#include "tools/csv_reader.h"

#include <fmt/format.h>

namespace fingerpost {
namespace {

struct Refusal {
  Status status;
};

}  // namespace

Result<bool> CsvReader::next() {
  try {
    if (!begun_) take_byte_order_mark();
    begun_ = true;
    pass_blank_lines();
    fields_.clear();
    line_ = next_line_;
    if (peek() == kEnd) return false;
    while (true) {
      if (fields_.size() == kCsvFieldsMax)
        refuse(line_, fmt::format("more than {} fields", kCsvFieldsMax));
      take_field(fields_.emplace_back());
      if (peek() != ',') break;
      take();
    }
    take_line_end();
    return true;
  } catch (const Refusal& refusal) {
    return refusal.status;
  }
}

int CsvReader::peek() {
  if (at_ == filled_) {
    if (ended_) return kEnd;
    buffer_.resize(kBufferBytes);
    const Result<std::size_t> got = read_(buffer_.data(), buffer_.size());
    if (!got) throw Refusal{got.status()};
    at_ = 0;
    filled_ = *got;
    ended_ = filled_ == 0;
    if (ended_) return kEnd;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

int CsvReader::take() {
  const int byte = peek();
  if (byte != kEnd) ++at_;
  return byte;
}

bool CsvReader::at_line_end() {
  const int byte = peek();
  return byte == '\n' || byte == '\r';
}

void CsvReader::take_line_end() {
  const int byte = take();
  if (byte == kEnd) return;
  ++next_line_;
  if (byte == '\r' && peek() == '\n') take();
}

void CsvReader::pass_blank_lines() {
  while (at_line_end()) take_line_end();
}

void CsvReader::take_byte_order_mark() {
  const int first = peek();
  constexpr std::string_view kUtf16 =
      "this is UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)";
  if (first == 0xFE || first == 0xFF) refuse(1, kUtf16);
  if (first != 0xEF) return;
  for (const int expected : {0xEF, 0xBB, 0xBF}) {
    if (take() != expected) refuse(1, "the file begins with bytes that are not UTF-8");
  }
}

void CsvReader::take_field(std::string& field) {
  if (peek() == '"') {
    take_quoted(field);
    return;
  }
  while (peek() != ',' && peek() != kEnd && !at_line_end()) {
    if (peek() == '"') refuse(next_line_, "a quote inside a field that does not begin with one");
    put(field, take(), next_line_);
  }
}

void CsvReader::take_quoted(std::string& field) {
  const std::uint64_t began = next_line_;
  take();
  while (true) {
    if (peek() == kEnd) refuse(began, "the quote that opens here is never closed");
    const bool ends_line = at_line_end();
    const int byte = take();
    if (byte == '"') {
      if (peek() != '"') break;
      take();
    }
    put(field, byte, began);
    if (ends_line) {
      ++next_line_;
      if (byte == '\r' && peek() == '\n') put(field, take(), began);
    }
  }
  if (peek() != ',' && peek() != kEnd && !at_line_end()) {
    refuse(began,
           fmt::format("text follows the quote that closes the field on line {}", next_line_));
  }
}

void CsvReader::put(std::string& field, int byte, std::uint64_t began) {
  if (byte == 0 && line_ <= 1)
    refuse(began, "a NUL byte: this is UTF-16 or binary, not UTF-8 text");
  if (field.size() == kCsvFieldBytesMax) {
    refuse(began,
           fmt::format("the field that begins here is longer than {} bytes: is a quote unmatched?",
                       kCsvFieldBytesMax));
  }
  field += static_cast<char>(byte);
}

void CsvReader::refuse(std::uint64_t line, std::string_view why) {
  ended_ = true;
  at_ = filled_;
  line_ = line;
  throw Refusal{{Code::refused, std::string(why)}};
}

}  // namespace fingerpost
