// Comma-separated values, strictly: RFC 4180 in UTF-8, where a record ends with LF, CRLF or CR, a
// byte order mark is passed over, and blank lines are no records. Bad structure is an error, never
// a guess at what was meant.
//
// Bounded memory: one record, each field at most kCsvFieldBytesMax. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shm/status.h"

namespace fingerpost {

// A quote that is never closed swallows the file: it shows as a field longer than anything that is
// meant.
inline constexpr std::size_t kCsvFieldBytesMax = 8'192;
inline constexpr std::size_t kCsvFieldsMax = 256;

class CsvReader {
 public:
  // Fills up to `size` bytes; 0 at the end.
  using Read = std::function<Result<std::size_t>(char* bytes, std::size_t size)>;

  explicit CsvReader(Read read) : read_(std::move(read)) {}

  // The next record into fields(). false: no more. Refused for bad structure, which names its line;
  // nothing after it can be read.
  Result<bool> next();

  const std::vector<std::string>& fields() const noexcept { return fields_; }
  // Where the record, or what was refused, begins: lines of the file, from 1.
  std::uint64_t line() const noexcept { return line_; }

 private:
  static constexpr int kEnd = -1;
  static constexpr std::size_t kBufferBytes = 256 * 1024;

  int peek();
  int take();
  bool at_line_end();
  void take_line_end();
  void pass_blank_lines();
  void take_byte_order_mark();
  void take_field(std::string& field);
  void take_quoted(std::string& field);
  void put(std::string& field, int byte, std::uint64_t began);
  [[noreturn]] void refuse(std::uint64_t line, std::string_view why);

  Read read_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t filled_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::uint64_t next_line_ = 1;
  std::uint64_t line_ = 0;
  std::vector<std::string> fields_;
};

}  // namespace fingerpost
