// A worker as its authors would write it, outside this project: prints the shard of a tenant.
#include <cstdio>
#include <string>

#include "reader/reader.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto reader = fingerpost::Reader::open(argv[1]);
  if (!reader.ok()) {
    std::fprintf(stderr, "%s\n", reader.status().message().c_str());
    return 4;
  }
  const fingerpost::Route route = reader->resolve(argv[2]);
  if (!route.found()) return 1;
  std::puts(std::string(route.shard().name()).c_str());
}
