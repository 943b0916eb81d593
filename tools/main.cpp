// The fingerpost command: reads its arguments, runs one verb, and exits with what exit_status.h
// says.
#include <csignal>
#include <iostream>

#include "tools/cli_verbs.h"

namespace {

constexpr const char* kAbout =
    "Fingerpost: a tenant -> shard directory, one copy per host in shared memory.\n"
    "Verbs that read or write the directory take --directory URL (sqlite:PATH or PATH) or "
    "$FINGERPOST_DIRECTORY.";

constexpr const char* kFooter =
    "A verb that changes something prints the version it committed.\n"
    "\n"
    "Exit status: 0 done, or yes. 1 a definite no: unknown, not ready, differs. 2 the command line "
    "makes no sense.\n"
    "3 the input is refused. 4 unreachable: no such directory or segment, locked, not permitted. 5 "
    "internal error.\n"
    "Of several ids the worst decides.\n"
    "\n"
    "Example:\n"
    "  export FINGERPOST_DIRECTORY=sqlite:orders.db\n"
    "  fingerpost init --buckets 1024\n"
    "  fingerpost shard add s1 --primary db1:5432 --region eu\n"
    "  fingerpost bucket assign\n"
    "  fingerpost tenant create acme --shard s1\n"
    "  fingerpostd --name orders --state-dir /var/lib/fingerpost &\n"
    "  fingerpost resolve orders acme";

}  // namespace

int main(int argc, char** argv) {
  using namespace fingerpost;
  // Whoever reads our output may stop early; that is seen as a failed write.
  std::signal(SIGPIPE, SIG_IGN);
  std::ios::sync_with_stdio(false);

  CLI::App app(kAbout, "fingerpost");
  app.require_subcommand(1);
  app.footer(kFooter);
  app.set_version_flag("--version", FINGERPOST_VERSION);
  Context context;
  register_init_verb(app, context);
  register_shard_verbs(app, context);
  register_bucket_verbs(app, context);
  register_tenant_verbs(app, context);
  register_move_verbs(app, context);
  register_history_verb(app, context);
  register_directory_verbs(app, context);
  register_export_verb(app, context);
  register_import_verb(app, context);
  register_resolve_verb(app, context);
  register_status_verb(app, context);
  register_check_verb(app, context);
  register_size_verb(app, context);
  register_wait_verb(app, context);
  register_snapshot_verbs(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = app.exit(error) == 0;
    if (!asked_for_help) return static_cast<int>(ExitStatus::usage);
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "fingerpost: the answer could not be written to standard output\n";
    context.answer(ExitStatus::unreachable);
  }
  return static_cast<int>(context.exit_status);
}
