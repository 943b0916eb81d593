// Rules of the source tree that no compiler knows: who may include whom, and that each ordering
// names its partner.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Sources = std::map<std::string, std::string>;  // path from the root → text
using Faults = std::vector<std::string>;

Sources read_tree() {
  Sources sources;
  const fs::path root = FINGERPOST_SOURCE_DIR;
  for (const char* folder : {"shm", "reader", "syncer", "tools", "bench", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      sources[fs::relative(entry.path(), root)] = text.str();
    }
  }
  return sources;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.find('/'));
}

template <class Visit>
void for_each_line(const std::string& text, Visit&& visit) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) visit(number, line);
}

// --- who includes whom ---

Faults wrong_directions(const Sources& sources) {
  const std::map<std::string, std::set<std::string>> allowed = {
      {"shm", {"shm"}},
      {"reader", {"reader", "shm"}},
      {"syncer", {"syncer", "shm"}},
      {"tools", {"tools", "reader", "syncer", "shm"}},
      {"bench", {"bench", "reader", "syncer", "shm"}},
      {"tests", {"tests", "bench", "tools", "reader", "syncer", "shm"}}};
  const std::regex include("^\\s*#\\s*include \"([^\"]+)\"");
  Faults faults;
  for (const auto& [path, text] : sources) {
    for_each_line(text, [&, &file = path](int number, const std::string& line) {
      std::smatch match;
      if (!std::regex_search(line, match, include)) return;
      if (allowed.at(folder_of(file)).contains(folder_of(match[1]))) return;
      faults.push_back(file + ":" + std::to_string(number) + " includes " + match[1].str());
    });
  }
  return faults;
}

Faults wrong_packages(const Sources& sources) {
  const std::map<std::string, std::string> only_in = {{"xxhash", "shm/hash.h"},
                                                      {"boost/interprocess", "shm/mapping.cpp"},
                                                      {"liburing", "syncer/uring_io.cpp"}};
  Faults faults;
  for (const auto& [path, text] : sources) {
    if (folder_of(path) == "tests" || folder_of(path) == "bench") continue;
    for (const auto& [package, home] : only_in) {
      if (path != home && text.find("#include <" + package) != std::string::npos)
        faults.push_back(path + " includes " + package + ", which belongs to " + home);
    }
  }
  return faults;
}

// --- orderings ---

Faults other_orders(const Sources& sources) {
  const std::regex other("memory_order(_|::)(relaxed|consume|acq_rel|seq_cst)|atomic_thread_fence");
  // An access without an order is sequentially consistent: not what was proven either. The reader
  // has atomics of its own besides the shared words.
  const std::regex unnamed("\\.load\\(\\)");
  Faults faults;
  for (const auto& [path, text] : sources) {
    const bool in_shm = folder_of(path) == "shm";
    if (!in_shm && folder_of(path) != "reader") continue;
    for_each_line(text, [&, &file = path](int number, const std::string& line) {
      if (std::regex_search(line, other) || (in_shm && std::regex_search(line, unnamed)))
        faults.push_back(file + ":" + std::to_string(number));
    });
  }
  return faults;
}

struct Tags {
  std::map<std::string, int> stores;
  std::map<std::string, int> loads;
  Faults untagged;  // release stores that name no partner
};

// A tag stands behind the last line of its statement.
Tags find_tags(const Sources& sources) {
  const std::regex tag("// pairs: ([a-z-]+)");
  Tags tags;
  for (const auto& [path, text] : sources) {
    if (folder_of(path) == "tests") continue;
    std::string statement;
    for_each_line(text, [&, &file = path](int number, const std::string& line) {
      const std::string code = line.substr(0, line.find("//"));
      statement += code;
      std::smatch match;
      const bool tagged = std::regex_search(line, match, tag);
      const bool stores = statement.find("kRelease)") != std::string::npos;
      if (tagged && stores) ++tags.stores[match[1]];
      if (tagged && statement.find("load(") != std::string::npos) ++tags.loads[match[1]];
      const std::size_t last = code.find_last_not_of(' ');
      if (last == std::string::npos || std::string(";{}").find(code[last]) == std::string::npos)
        return;
      if (stores && !tagged) tags.untagged.push_back(file + ":" + std::to_string(number));
      statement.clear();
    });
  }
  return tags;
}

Faults unpaired(const Tags& tags) {
  Faults faults;
  for (const auto& [name, count] : tags.stores)
    if (!tags.loads.contains(name)) faults.push_back(name + " is stored and never loaded");
  for (const auto& [name, count] : tags.loads)
    if (!tags.stores.contains(name)) faults.push_back(name + " is loaded and never stored");
  return faults;
}

std::string list(const Faults& faults) {
  std::string text;
  for (const std::string& fault : faults) text += "\n  " + fault;
  return text;
}

}  // namespace

TEST_CASE("folders include in one direction only") {
  const Sources sources = read_tree();
  REQUIRE(sources.size() > 50);
  const Faults faults = wrong_directions(sources);
  CHECK_MESSAGE(faults.empty(), list(faults));
  CHECK(wrong_directions({{"shm/a.h", "#include \"reader/reader.h\"\n"}}).size() == 1);
  CHECK(wrong_directions({{"reader/a.h", "#include \"syncer/batch.h\"\n"}}).size() == 1);
  CHECK(wrong_directions({{"syncer/a.h", "#include \"reader/reader.h\"\n"}}).size() == 1);
  CHECK(wrong_directions({{"tools/a.h", "#include \"tests/temp_folder.h\"\n"}}).size() == 1);
  CHECK(wrong_directions({{"shm/a.h", "#include \"b.h\"\n"}}).size() == 1);
  CHECK(wrong_directions({{"tools/a.h", "#include \"reader/reader.h\"\n"}}).empty());
}

TEST_CASE("each of these packages is included in one file") {
  const Faults faults = wrong_packages(read_tree());
  CHECK_MESSAGE(faults.empty(), list(faults));
  CHECK(wrong_packages({{"shm/a.h", "#include <xxhash.h>\n"}}).size() == 1);
  CHECK(wrong_packages({{"syncer/a.cpp", "#include <boost/interprocess/mapped_region.hpp>\n"}})
            .size() == 1);
  CHECK(wrong_packages({{"shm/hash.h", "#include <xxhash.h>\n"}}).empty());
}

TEST_CASE("shared words know two orders, acquire and release, and no fence") {
  const Faults faults = other_orders(read_tree());
  CHECK_MESSAGE(faults.empty(), list(faults));
  CHECK(other_orders({{"shm/a.h", "x.load(std::memory_order_relaxed);\n"}}).size() == 1);
  CHECK(other_orders({{"reader/a.h", "std::atomic_thread_fence(kAcquire);\n"}}).size() == 1);
  CHECK(other_orders({{"shm/a.h", "return x.load();\n"}}).size() == 1);
}

TEST_CASE("every release store names the acquire load it pairs with, and both exist") {
  const Tags tags = find_tags(read_tree());
  CHECK(tags.stores.size() > 15);
  CHECK_MESSAGE(tags.untagged.empty(), list(tags.untagged));
  const Faults faults = unpaired(tags);
  CHECK_MESSAGE(faults.empty(), list(faults));

  CHECK(find_tags({{"shm/a.h", "x.store(1, kRelease);\n"}}).untagged.size() == 1);
  CHECK(find_tags({{"shm/a.h", "x.store(1,\n  kRelease);  // pairs: a\n"}}).untagged.empty());
  CHECK(unpaired(find_tags({{"shm/a.h", "x.store(1, kRelease);  // pairs: a\n"}})).size() == 1);
  CHECK(unpaired(find_tags({{"shm/a.h",
                             "x.store(1, kRelease);  // pairs: a\n"
                             "y = x.load(kAcquire);  // pairs: b\n"}}))
            .size() == 2);
}
