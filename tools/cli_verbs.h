// The families of verbs that make up the fingerpost command.
#pragma once

#include "tools/cli_context.h"

namespace fingerpost {

void register_init_verb(CLI::App& app, Context& context);
void register_shard_verbs(CLI::App& app, Context& context);
void register_bucket_verbs(CLI::App& app, Context& context);
void register_tenant_verbs(CLI::App& app, Context& context);
void register_split_verbs(CLI::App& tenant, Context& context);  // below `tenant`
void register_pin_verbs(CLI::App& tenant, Context& context);    // below `tenant`
void register_move_verbs(CLI::App& app, Context& context);
void register_history_verb(CLI::App& app, Context& context);
void register_directory_verbs(CLI::App& app, Context& context);
void register_export_verb(CLI::App& app, Context& context);
void register_import_verb(CLI::App& app, Context& context);
void register_resolve_verb(CLI::App& app, Context& context);
void register_status_verb(CLI::App& app, Context& context);
void register_check_verb(CLI::App& app, Context& context);
void register_size_verb(CLI::App& app, Context& context);
void register_wait_verb(CLI::App& app, Context& context);
void register_snapshot_verbs(CLI::App& app, Context& context);

}  // namespace fingerpost
