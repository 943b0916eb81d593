// How a verb shows what a segment said of one tenant.
#pragma once

#include <string>

#include "reader/reader.h"
#include "tools/cli_context.h"

namespace fingerpost {

// A line of columns, or an object with --json.
void print_route(const Context& context, const Reader& reader, const std::string& id,
                 const Route& route);

}  // namespace fingerpost
