// The answer of `fingerpost resolve --explain`.
#pragma once

#include <optional>
#include <string>

#include "reader/reader.h"
#include "shm/status.h"
#include "tools/cli_context.h"

namespace fingerpost {

// What answers for a tenant id, or for one object of it, and why, on stdout, and of the directory
// too where --directory or the environment names one. A directory that cannot be read is named on
// stderr, and is no answer.
Status print_explanation(Context& context, const Reader& reader, const std::string& id,
                         const std::optional<std::string>& object);

}  // namespace fingerpost
