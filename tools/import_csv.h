// `fingerpost import`: entries from CSV, all or nothing.
//
// Columns, named in the first record: entry_id and shard_id; state (ACTIVE where it is empty or
// missing) and target_shard may be there; epoch and updated_at are passed over, since the directory
// keeps them itself. Any other column is refused: a mistyped name would import something else than
// was meant.
//
// A row whose entry is missing is inserted. A row that says what the directory says is accepted; so
// is one that leaves the state open while the entry is on that shard and not DELETED. Every other
// row is a fault: an import moves nothing, ends no move and revives nothing. Rows are staged in a
// temporary table, and the write lock is held for the checks and one insert only; a run that was
// cut has changed nothing, and a rerun ends as one run does.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shm/status.h"
#include "tools/csv_reader.h"
#include "tools/directory.h"

namespace fingerpost {

struct ImportFault {
  std::uint64_t line = 0;
  std::string message;

  bool operator==(const ImportFault&) const = default;
};

inline constexpr std::size_t kImportFaultsKept = 100;

struct ImportReport {
  std::uint64_t rows = 0;       // records after the header
  std::uint64_t inserted = 0;   // of a dry run: would be
  std::uint64_t unchanged = 0;  // were in the directory already
  std::uint64_t repeated = 0;   // equal to an earlier row of the file
  std::uint64_t version = 0;
  std::uint64_t fault_count = 0;
  std::vector<ImportFault>
      faults;  // the first kImportFaultsKept by line; any means that nothing was applied
};

struct ImportOptions {
  bool dry_run = false;
  std::function<void(std::uint64_t rows_done, std::uint64_t rows)> on_insert;  // may be empty
};

// A Status only for what is no fault of a row: input that cannot be read, no header.
Result<ImportReport> import_csv(Directory& directory, CsvReader::Read read,
                                const ImportOptions& options);

}  // namespace fingerpost
