// The records of an import, from CSV with a header or from JSON Lines; which of them it is, the
// first byte says: '{' begins an object and no column's name.
//
// Bounded memory: one record. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "shm/status.h"
#include "tools/csv_reader.h"

namespace fingerpost {

inline constexpr std::size_t kJsonLineBytesMax = 1'048'576;

// One record. What is not there is empty.
struct ImportRecord {
  std::string kind;  // "entry" where the record names none
  std::string id;    // entry_id
  std::string shard;
  std::string state;
  std::string target;
  nlohmann::json details = nlohmann::json::object();  // whatever else it says
  std::string fault;  // why this record is none; the next one may be
};

class ImportReader {
 public:
  explicit ImportReader(CsvReader::Read read);
  ~ImportReader();

  // Before all else. Refused for input without a first line that makes sense.
  Status begin();
  // false: no more. Refused for structure after which nothing can be read.
  Result<bool> next(ImportRecord& record);
  // Where the record, or what was refused, begins: from 1.
  std::uint64_t line() const noexcept;

 private:
  class Format;
  class Csv;
  class JsonLines;

  CsvReader::Read read_;
  std::unique_ptr<Format> format_;
};

}  // namespace fingerpost
