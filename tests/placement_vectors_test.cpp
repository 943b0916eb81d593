// Where ids and objects are placed is fixed for ever: the table that other implementations are held
// against, and other people's XXH3 over arbitrary bytes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "shm/hash.h"
#include "tests/moving_directory.h"
#include "tests/run_program.h"

namespace fingerpost {
namespace {

struct Vector {
  std::string bytes;
  std::uint64_t hash = 0;
  std::uint64_t bucket = 0;      // of 1024
  std::uint64_t part = 0;        // of 12
  std::uint64_t hash_shard = 0;  // of 3
  std::string what;
};

std::uint64_t number(const std::string& text, int base) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  REQUIRE(error == std::errc{});
  REQUIRE(stop == end);
  return value;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  if (hex == "-") return bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(number(hex.substr(i, 2), 16));
  }
  return bytes;
}

std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

std::vector<Vector> read_table() {
  std::ifstream table(FINGERPOST_VECTORS);
  std::vector<Vector> vectors;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> fields;
    std::istringstream text(line);
    for (std::string field; std::getline(text, field, '\t');) fields.push_back(field);
    REQUIRE(fields.size() == 6);
    vectors.push_back({from_hex(fields[0]), number(fields[1], 16), number(fields[2], 10),
                       number(fields[3], 10), number(fields[4], 10), fields[5]});
  }
  return vectors;
}

// Of every length up to where XXH3 has no further way of its own, and some beyond.
std::vector<std::string> arbitrary_bytes() {
  std::mt19937_64 random(1);
  std::vector<std::string> all;
  for (std::size_t size = 0; size < 600; size += size < 260 ? 1 : 37) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    all.push_back(bytes);
  }
  for (const std::size_t size : {1'024U, 1'025U, 4'096U, 70'001U}) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    all.push_back(bytes);
  }
  return all;
}

}  // namespace

TEST_CASE("every row of the table is what this build makes of its bytes") {
  const std::vector<Vector> vectors = read_table();
  CHECK(vectors.size() > 50);
  for (const Vector& vector : vectors) {
    CAPTURE(vector.what);
    CHECK(placement_hash(vector.bytes) == vector.hash);
    CHECK(vector.hash % 1'024 == vector.bucket);
    CHECK(vector.hash % 12 == vector.part);
    CHECK(vector.hash % 3 == vector.hash_shard);
  }
}

TEST_CASE("a directory places the ids of the table as it says") {
  MovingDirectory buckets;
  buckets.with_buckets(1'024);
  TempFolder folder;
  const std::vector<std::string> shards = {"h0", "h1", "h2"};
  REQUIRE(init_directory(folder.file("hash.db"), {Fallback::hash, 0, shards, {}}).ok());
  const auto hash = Directory::open(folder.file("hash.db"));
  REQUIRE(hash.ok());
  for (const Vector& vector : read_table()) {
    if (vector.what.starts_with("an ")) continue;  // objects
    CAPTURE(vector.what);
    CHECK(buckets.directory->bucket_of(vector.bytes) == fmt::format("bucket:{}", vector.bucket));
    CHECK(fallback_shard(**hash, vector.bytes) == shards[vector.hash_shard]);
  }
}

TEST_CASE("python3-xxhash says the same of arbitrary bytes") {
  const Ran there = run_program("/usr/bin/python3", {"-c", "import xxhash"});
  if (there.status != 0) {
    MESSAGE("skipped: python3-xxhash is not installed");
    return;
  }
  std::string input;
  std::string expected;
  for (const std::string& bytes : arbitrary_bytes()) {
    input += to_hex(bytes) + "\n";
    expected += fmt::format("{:016x}\n", placement_hash(bytes));
  }
  const Ran ran = run_program("/usr/bin/python3",
                              {"-c",
                               "import sys, xxhash\n"
                               "for line in sys.stdin:\n"
                               "  print(xxhash.xxh3_64_hexdigest(bytes.fromhex(line.strip())))\n"},
                              input);
  CHECK_MESSAGE(ran.status == 0, ran.err);
  CHECK(ran.out == expected);
}

TEST_CASE("xxhsum says the same of arbitrary bytes") {
  if (run_program("/usr/bin/xxhsum", {"--version"}).status != 0) {
    MESSAGE("skipped: xxhash is not installed");
    return;
  }
  const TempFolder folder;
  std::vector<std::string> arguments = {"-H3"};
  const std::vector<std::string> all = arbitrary_bytes();
  std::string expected;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string path = folder.file(std::to_string(i));
    std::ofstream(path, std::ios::binary) << all[i];
    arguments.push_back(path);
    expected += fmt::format("XXH3 ({}) = {:016x}\n", path, placement_hash(all[i]));
  }
  const Ran ran = run_program("/usr/bin/xxhsum", arguments);
  CHECK_MESSAGE(ran.status == 0, ran.err);
  CHECK(ran.out == expected);
}

}  // namespace fingerpost
