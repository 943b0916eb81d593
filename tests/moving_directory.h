// A directory made by our verbs, with shards s1 and s2, for tests of what moves and removes
// entries.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "tests/temp_folder.h"
#include "tools/directory_buckets.h"
#include "tools/directory_init.h"
#include "tools/directory_shards.h"
#include "tools/directory_tenants.h"

namespace fingerpost {

struct MovingDirectory {
  TempFolder folder;
  std::string path = folder.file("directory.db");
  std::unique_ptr<Directory> directory;

  // `beneath`: /dev/shm for what commits often.
  explicit MovingDirectory(const std::string& beneath = "/tmp") : folder(beneath) {}

  // All buckets begin on s1.
  Directory& with_buckets(std::uint32_t buckets) {
    make({Fallback::buckets, buckets, {}, {}});
    add_shards();
    REQUIRE(assign_buckets(*directory, {"s1"}, {}).ok());
    return *directory;
  }
  Directory& with_hash() { return make({Fallback::hash, 0, {"s1", "s2"}, {}}); }
  Directory& without_fallback() {
    make({});
    add_shards();
    return *directory;
  }

  // Another connection, for another thread or process.
  std::unique_ptr<Directory> open() const {
    auto opened = Directory::open(path);
    if (!opened) throw std::runtime_error(opened.status().message());
    return *std::move(opened);
  }

  void sql(const std::string& text) { directory->db().exec(text); }

  // "s1 FROZEN s2", or "nothing".
  std::string entry(const std::string& id) {
    const auto row = find_entry(*directory, id);
    if (!row) return "nothing";
    return row->shard + " " + row->state + (row->target.empty() ? "" : " " + row->target);
  }
  std::uint64_t epoch(const std::string& id) { return find_entry(*directory, id)->epoch; }

 private:
  Directory& make(const InitOptions& options) {
    const Result<InitResult> made = init_directory("sqlite:" + path, options);
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    directory = open();
    return *directory;
  }
  void add_shards() {
    for (const char* name : {"s1", "s2"}) {
      ShardSpec spec;
      spec.name = name;
      REQUIRE(add_shard(*directory, spec).ok());
    }
  }
};

}  // namespace fingerpost
