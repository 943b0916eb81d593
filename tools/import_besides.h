// What an import says besides entries: the layout, which must be the directory's own; shards;
// splits; pins. Staged in temporary tables beside the entries (temp.staged, directory_import.cpp),
// compared with the directory, and written in its transaction.
//
// Fills gaps, like all of an import: a shard that is there with other values, another number of
// parts or another pin is a fault of its line. Only a shard that has nothing but its name, as
// `init` makes those of the hash list, is filled in.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shm/shard_spec.h"
#include "tools/directory.h"
#include "tools/import_faults.h"
#include "tools/import_reader.h"

namespace fingerpost {

class ImportBesides {
 public:
  // Makes its temporary tables, and the view temp.known_shard (shard_id, region) of the shards that
  // are there or staged.
  ImportBesides(Directory& directory, ImportFaults& faults);
  ~ImportBesides();
  ImportBesides(const ImportBesides&) = delete;
  ImportBesides& operator=(const ImportBesides&) = delete;

  // A record of any kind but "entry".
  void stage(const ImportRecord& record, std::uint64_t line);

  // Everything staged against the directory, as it is in this transaction.
  void compare();

  // In this order around the entries of tenants and buckets, which come after the shards.
  std::uint64_t insert_shards();
  std::uint64_t insert_splits();  // and brings their parts where the staged entries say
  std::uint64_t insert_pins();

 private:
  struct StagedShard {
    ShardSpec spec;
    std::uint64_t line = 0;
    enum class Fate : std::uint8_t { add, fill, equal } fate = Fate::add;
  };

  void stage_layout(const ImportRecord& record, std::uint64_t line);
  void stage_shard(const ImportRecord& record, std::uint64_t line);
  void stage_split(const ImportRecord& record, std::uint64_t line);
  void stage_pin(const ImportRecord& record, std::uint64_t line);
  void compare_shards();
  void compare_parts();
  void compare_splits();
  void compare_pins();
  void compare_regions();
  // A fault for each row of `select`: its line, an id, a text with two places, for the id and for
  // the last column.
  void add_faults(const std::string& select);

  Directory& directory_;
  ImportFaults& faults_;
  std::vector<StagedShard> shards_;
};

}  // namespace fingerpost
