// `fingerpost import`: entries from CSV or JSON Lines, all or nothing, and what else an export
// (directory_export.h) says: layout, shards, splits, pins (import_besides.h).
//
// Columns, named in the first record of CSV, and names in an object: entry_id and shard_id; state
// (ACTIVE where it is empty or missing) and target_shard may be there, and so may kind (import
// takes a record without one for an entry) and, in CSV, details (what else a record of another kind
// says, a JSON object); epoch and updated_at are passed over, since the directory keeps them
// itself. Any other is refused: a mistyped name would import something else than was meant.
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
#include "tools/import_faults.h"

namespace fingerpost {

struct ImportReport {
  std::uint64_t rows = 0;       // records after the header
  std::uint64_t inserted = 0;   // of a dry run: would be
  std::uint64_t unchanged = 0;  // were in the directory already
  std::uint64_t repeated = 0;   // equal to an earlier row of the file
  std::uint64_t shards = 0;     // added or filled in; like splits and pins, 0 of a dry run
  std::uint64_t splits = 0;
  std::uint64_t pins = 0;
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
Result<ImportReport> import_directory(Directory& directory, CsvReader::Read read,
                                      const ImportOptions& options);

}  // namespace fingerpost
