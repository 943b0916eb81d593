#include "shm/number_text.h"

#include <doctest/doctest.h>

namespace fingerpost {
namespace {

TEST_CASE("numbers are grouped by thousands") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1'000) == "1,000");
  CHECK(grouped(84'213'760) == "84,213,760");
  CHECK(grouped(~std::uint64_t{0}) == "18,446,744,073,709,551,615");
}

TEST_CASE("modes are four octal digits, without the kind of file") {
  CHECK(mode_text(0640) == "0640");
  CHECK(mode_text(0101777) == "1777");
}

}  // namespace
}  // namespace fingerpost
