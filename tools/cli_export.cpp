// fingerpost export
#include <iostream>

#include "tools/cli_verbs.h"
#include "tools/directory_export.h"

namespace fingerpost {

void register_export_verb(CLI::App& app, Context& context) {
  CLI::App* verb = add_directory_verb(
      app, "export",
      "Print a directory at one version as CSV, or with --json as JSON Lines: layout, shards, "
      "entries, splits and pins",
      "fingerpost export --directory sqlite:orders.db > orders.csv\n"
      "  fingerpost init --buckets 64 --directory copy.db\n"
      "  fingerpost export --json --directory orders.db | fingerpost import - --directory copy.db\n"
      "\n"
      "What it prints, imported into an empty directory of the same layout, makes one that serves "
      "the same. Versions,\n"
      "epochs, history and reported loads are not carried over; of an open move only the state is.",
      context);
  verb->callback([&context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return export_directory(directory,
                              context.json ? ExportFormat::json_lines : ExportFormat::csv,
                              [](std::string_view row) { std::cout << row; });
    });
  });
}

}  // namespace fingerpost
