#include "tools/csv_reader.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace fingerpost {
namespace {

// `text` in pieces of `step` bytes.
CsvReader::Read pieces(std::string text, std::size_t step) {
  return [text = std::move(text), step, at = std::size_t{0}](
             char* bytes, std::size_t size) mutable -> Result<std::size_t> {
    const std::size_t n = std::min({size, step, text.size() - at});
    std::memcpy(bytes, text.data() + at, n);
    at += n;
    return n;
  };
}

// All records as "line:[fields]", and what ended them if that was not the end.
std::string parsed(const std::string& text, std::size_t step = 4'096) {
  CsvReader reader(pieces(text, step));
  std::string all;
  for (;;) {
    const Result<bool> more = reader.next();
    if (!more) return all + fmt::format("{}:{}", reader.line(), more.status().message());
    if (!*more) return all;
    all += fmt::format("{}:{} ", reader.line(), reader.fields());
  }
}

}  // namespace

TEST_CASE("line ends, byte order mark, blank lines and a missing last line end change nothing") {
  const std::string plain = R"(1:["a", "b"] 2:["c", "d"] )";
  for (const char* text : {"a,b\nc,d\n", "a,b\r\nc,d\r\n", "a,b\rc,d\r", "a,b\nc,d",
                           "\xEF\xBB\xBF"
                           "a,b\nc,d\n",
                           "a,b\nc,d\n\n\n", "a,b\r\nc,d\r\n\r\n", "\"a\",\"b\"\n\"c\",d"}) {
    CAPTURE(text);
    CHECK(parsed(text) == plain);
    CHECK(parsed(text, 1) == plain);
  }
  CHECK(parsed("").empty());
  CHECK(parsed("\n\r\n\r").empty());
  CHECK(parsed("a\n\n\nb\n") == R"(1:["a"] 4:["b"] )");
}

TEST_CASE("quotes hold commas, quotes and line ends, and lines are still counted") {
  CHECK(parsed("\"a,b\",\"c\"\"d\"\n") == R"(1:["a,b", "c\"d"] )");
  CHECK(parsed("\"a\nb\",1\nc,2\n") == R"(1:["a\nb", "1"] 3:["c", "2"] )");
  CHECK(parsed("\"a\r\nb\",1\r\nc,2\r\n", 1) == R"(1:["a\r\nb", "1"] 3:["c", "2"] )");
  CHECK(parsed("\"\",\n,\n") == R"(1:["", ""] 2:["", ""] )");
}

TEST_CASE("bad structure is refused with the line where it begins") {
  CHECK(parsed("a,b\nc,\"d\ne,f\n") ==
        R"(1:["a", "b"] 2:the quote that opens here is never closed)");
  CHECK(parsed("a\n\"b\"c\n") ==
        R"(1:["a"] 2:text follows the quote that closes the field on line 2)");
  CHECK(parsed("a\nb\"c\n") == R"(1:["a"] 2:a quote inside a field that does not begin with one)");
  const std::string swallowed = parsed("a\nb\n\"c\n" + std::string(1'000'000, 'x'));
  CHECK(swallowed.find("3:the field that begins here is longer than 8192 bytes") !=
        std::string::npos);
  CHECK(parsed(std::string(300, ',')).find("more than 256 fields") != std::string::npos);
}

TEST_CASE("UTF-16 is refused by name, with a byte order mark or without") {
  using namespace std::string_literals;
  CHECK(parsed("\xFF\xFE"
               "a\0,\0"s)
            .find("UTF-16") != std::string::npos);
  CHECK(parsed("\xFE\xFF\0a\0,"s).find("UTF-16") != std::string::npos);
  CHECK(parsed("a\0,\0b\0"s).find("UTF-16") != std::string::npos);
  CHECK(parsed("\xEF\xBB"
               "a")
            .find("not UTF-8") != std::string::npos);
}

TEST_CASE("a read that fails is passed on, and nothing is read after it") {
  int calls = 0;
  CsvReader reader([&](char*, std::size_t) -> Result<std::size_t> {
    ++calls;
    return Status(Code::io_error, "the disk is gone");
  });
  const Result<bool> more = reader.next();
  REQUIRE_FALSE(more.ok());
  CHECK(more.status().code() == Code::io_error);
  CHECK(calls == 1);
}

}  // namespace fingerpost
