// The fingerpost command: reads its arguments, runs one verb, and exits with what exit_status.h
// says.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <string>

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

// The first word that should name a verb and does not, as a sentence; empty where there is none.
std::string why_not_a_verb(const CLI::App& app, int argc, char** argv) {
  const CLI::App* here = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const auto verbs =  // and not groups of options, which have no name
        here->get_subcommands([](const CLI::App* verb) { return !verb->get_name().empty(); });
    if (verbs.empty()) return {};
    const std::string word = argv[i];
    const auto found = std::find_if(verbs.begin(), verbs.end(),
                                    [&](const CLI::App* verb) { return verb->check_name(word); });
    if (found != verbs.end()) {
      here = *found;
      continue;
    }
    std::string known;
    for (const CLI::App* verb : verbs) known += " " + verb->get_name();
    return "'" + word + "' is no verb of " + here->get_name() + ", which has:" + known;
  }
  return {};
}

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
  if (const std::string why = why_not_a_verb(app, argc, argv); !why.empty()) {
    std::cerr << "fingerpost: " << why << "\nRun with --help for more information.\n";
    return static_cast<int>(ExitStatus::usage);
  }
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
