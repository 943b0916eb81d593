#include "shm/text_file.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

TEST_CASE("a text file is read whole, whatever its size says") {
  const TempFolder folder;
  const std::string text(100'000, 'x');
  std::ofstream(folder.file("a")) << text;
  CHECK(read_text_file(folder.file("a")) == text);
  CHECK(read_text_file("/proc/self/status").value_or("").starts_with("Name:"));
  CHECK_FALSE(read_text_file(folder.file("none")));
  CHECK_FALSE(read_text_file(folder.path()));
}

TEST_CASE("fields are what is between separators, empty ones left out") {
  CHECK(fields_of("", ',').empty());
  CHECK(fields_of(",,", ',').empty());
  CHECK(fields_of("a,,bc,", ',') == std::vector<std::string_view>{"a", "bc"});
}

TEST_CASE("a number is found at the beginning or after its key, and nowhere else") {
  CHECK(number_in(" 42\n") == 42U);
  CHECK(number_in("18446744073709551615") == ~std::uint64_t{0});
  for (const char* text : {"", "max", "-1", "18446744073709551616", "\n4"}) {
    CAPTURE(text);
    CHECK_FALSE(number_in(text));
  }
  const char* stat = "total_inactive_file 7\ninactive_file 5\nMemAvailable:   9 kB\nbad x\n";
  CHECK(number_after(stat, "inactive_file") == 5U);
  CHECK(number_after(stat, "MemAvailable") == 9U);
  CHECK_FALSE(number_after(stat, "inactive"));
  CHECK_FALSE(number_after(stat, "bad"));
}

}  // namespace
}  // namespace fingerpost
