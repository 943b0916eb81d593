// lookups SEGMENT COUNT ID: a worker that does nothing but COUNT lookups between the lines "begin"
// and "end", so that a tracer sees what they cost.
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "reader/reader.h"

namespace {

void say(std::string_view line) {
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::exit(5);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto reader = fingerpost::Reader::open(argv[1]);
  if (!reader.ok()) return 4;
  const auto count = std::strtoul(argv[2], nullptr, 10);
  unsigned long found = 0;
  say("begin\n");
  for (unsigned long i = 0; i < count; ++i) found += reader->resolve(argv[3]).found();
  say("end\n");
  return found == count ? 0 : 1;
}
