// The C interface as four languages use it, and what they are compiled against.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/run_program.h"
#include "tests/syncer_host.h"

using namespace fingerpost;

namespace {

const std::string kSource = FINGERPOST_ABI_SOURCE;  // tests/abi
const std::string kHeader = FINGERPOST_HEADER;
const std::string kLibrary = FINGERPOST_LIBRARY;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

// Compiles one C file of tests/abi as C99 against header and library.
std::string compiled(const std::string& name, const TempFolder& folder) {
  const std::string program = folder.file(name);
  const Ran built =
      run_program(FINGERPOST_CC, {"-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion",
                                  "-Werror", "-I" + folder_of(kHeader), kSource + "/" + name + ".c",
                                  "-o", program, kLibrary, "-Wl,-rpath," + folder_of(kLibrary)});
  REQUIRE_MESSAGE(built.status == 0, built.err);
  return program;
}

// A host with a tenant of each kind.
struct Host : SyncerHost {
  Host() {
    sql("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('acme', 'alpha'), ('frozen', "
        "'beta'), ('gone', 'beta'), ('wide', 'alpha'), ('ümlaut', 'gamma'), "
        "('an-id-that-is-too-long-for-a-slot-of-the-table-and-has-a-tail', 'gamma')");
    sql("UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = 'frozen'");
    sql("UPDATE shard_directory SET state = 'DELETED' WHERE entry_id = 'gone'");
    sql("INSERT INTO directory_split (entry_id, parts) VALUES ('wide', 3)");
    sql("UPDATE shard_directory SET shard_id = 'gamma' WHERE entry_id = 'part:1:wide'");
    sql("INSERT OR REPLACE INTO shard_directory (entry_id, shard_id) VALUES ('bucket:" +
        std::to_string(placement_hash("somebody") % 16) + "', 'beta')");
    serve();
    std::ofstream file(questions());
    for (const auto& [id, object] : asked()) file << id << '\t' << object << '\n';
  }

  std::string questions() const { return file("questions"); }
  static std::vector<std::pair<std::string, std::string>> asked() {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string id :
         {"acme", "frozen", "gone", "wide", "ümlaut", "somebody", "nobody-at-all", "bucket:3",
          "a\x01z", "an-id-that-is-too-long-for-a-slot-of-the-table-and-has-a-tail"}) {
      all.emplace_back(id, "-");
      for (const std::string object : {"invoice-1", "invoice-2", "ünvoice"})
        all.emplace_back(id, object);
    }
    return all;
  }

  // What every language must print, by the C++ interface.
  std::string expected() const {
    const Reader worker = reader();
    std::ostringstream lines;
    for (const auto& [id, object] : asked()) {
      const bool whole = object == "-";
      const Route route = whole ? worker.resolve(id) : worker.resolve(id, object);
      const auto waited = whole ? worker.wait_writable(id, std::chrono::nanoseconds(0))
                                : worker.wait_writable(id, object, std::chrono::nanoseconds(0));
      lines << id << '\t' << object << '\t' << static_cast<int>(route.answer()) << '\t'
            << static_cast<int>(route.source()) << '\t' << static_cast<int>(route.state()) << '\t'
            << route.epoch() << '\t' << route.parts() << '\t' << route.writable() << '\t'
            << route.shard().name() << '\t' << route.shard().primary() << '\t'
            << to_string(waited.status().code()) << '\n';
    }
    return lines.str();
  }
  void check(const std::string& program, std::vector<std::string> before,
             const std::vector<std::string>& after = {}) const {
    before.insert(before.end(), {segment_path(), questions()});
    before.insert(before.end(), after.begin(), after.end());
    const Ran ran = run_program(program, before);
    CHECK_MESSAGE(ran.status == 0, program << " is not installed, or failed: " << ran.err);
    CHECK(ran.out == expected());
  }
};

}  // namespace

TEST_CASE_FIXTURE(Host, "C, Python, LuaJIT and PHP are told what C++ is told") {
  const TempFolder folder;
  const std::string answers = expected();
  for (const char* text :
       {"\talpha\t", "\tbeta\t", "\tgamma\t", "\ttimeout\n", "\trefused\n", "\tok\n"})
    CHECK_MESSAGE(answers.find(text) != std::string::npos, "no question is answered" << text);
  check(compiled("consumer", folder), {});
  check("/usr/bin/env", {"python3", kSource + "/consumer.py", kLibrary});
  check("/usr/bin/env", {"luajit", kSource + "/consumer.lua", kLibrary}, {kHeader});
  check("/usr/bin/env", {"php", "-d", "ffi.enable=1", kSource + "/consumer.php", kLibrary},
        {kHeader});
}

// A program that was compiled once goes on with every later libfingerpost.so.0: what is there may
// not change, and what is added is added to abi.txt in the same commit.
TEST_CASE("the exported functions and the layout of the structs are those of abi.txt") {
  const TempFolder folder;
  const Ran layout = run_program(compiled("layout", folder), {});
  REQUIRE(layout.status == 0);
  const Ran symbols = run_program("/usr/bin/env", {"nm", "-D", "--defined-only", kLibrary});
  REQUIRE_MESSAGE(symbols.status == 0, symbols.err);
  std::istringstream lines(symbols.out);
  std::vector<std::string> names;
  for (std::string address, kind, name; lines >> address >> kind >> name;) {
    if (kind != "A") names.push_back(name);  // the name of the version itself
  }
  std::sort(names.begin(), names.end());
  std::string found;
  for (const std::string& name : names) found += name + "\n";
  found += layout.out;
  CHECK(found == text_of(kSource + "/abi.txt"));
}

TEST_CASE("every function of the header is exported, and is C++ as well") {
  const TempFolder folder;
  const std::string header = text_of(kHeader);
  const std::string golden = text_of(kSource + "/abi.txt");
  std::istringstream names(golden);
  std::size_t functions = 0;
  for (std::string name; std::getline(names, name) && name.find("@@") != std::string::npos;) {
    CHECK_MESSAGE(header.find(name.substr(0, name.find("@@")) + "(") != std::string::npos, name);
    ++functions;
  }
  std::size_t declared = 0;
  for (std::size_t at = header.find("\n#ifdef __cplusplus\nextern"); at != std::string::npos;
       at = header.find("(", at + 1)) {
    ++declared;
  }
  CHECK(functions >= 20);
  CHECK(declared > functions);
  std::ofstream(folder.file("plus.cpp")) << "#include \"fingerpost.h\"\nint main() { return 0; }\n";
  const Ran built = run_program(
      FINGERPOST_CXX, {"-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                       "-I" + folder_of(kHeader), "-fsyntax-only", folder.file("plus.cpp")});
  CHECK_MESSAGE(built.status == 0, built.err);
}
