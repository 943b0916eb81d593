// `fingerpost export`: a directory as rows that `import` reads: its layout, shards, entries, splits
// and pins, read at one version. Imported into an empty directory of the same layout they make one
// that serves the same; versions, history, open moves (but not the states they left) and loads are
// not in it, nor the parts of tenants that are DELETED, which nothing resolves by.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "shm/status.h"
#include "tools/directory.h"

namespace fingerpost {

enum class ExportFormat : std::uint8_t { csv, json_lines };

// `write` takes a row with its line end, the header of CSV included. Refused where a shard has more
// than a field of CSV holds.
Status export_directory(Directory& directory, ExportFormat format,
                        const std::function<void(std::string_view row)>& write);

}  // namespace fingerpost
