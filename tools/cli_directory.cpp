// fingerpost directory rebase, fingerpost approve
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_epochs.h"

namespace fingerpost {
namespace {

void register_rebase(CLI::App& directory_verbs, Context& context) {
  auto above = std::make_shared<std::uint64_t>(0);
  CLI::App* verb = add_directory_verb(
      directory_verbs, "rebase",
      "After a restore from a backup: lift the version above what hosts or shards have seen, and "
      "give every row an epoch above it. Refused while a move is open",
      "fingerpost directory rebase --above 1843002", context);
  verb->add_option("--above", *above, "The highest version or epoch that anybody has seen")
      ->type_name("VERSION")
      ->required();
  verb->callback([above, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return answer_version(context, rebase_directory(directory, *above));
    });
  });
}

struct ApproveFlags {
  std::uint64_t version = 0;
  std::string who;
};

void register_approve(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ApproveFlags>();
  CLI::App* verb = add_directory_verb(
      app, "approve",
      "Let every host apply what its poison guard withholds, up to a version (`status` names it)",
      "fingerpost approve 1843002 --as mia", context);
  verb->add_option("VERSION", flags->version, "Up to this one")->required();
  verb->add_option("--as", flags->who, "Who approves (else user@host)")->type_name("WHO");
  verb->callback([flags, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<std::uint64_t> version = approve_version(directory, flags->version, flags->who);
      if (!version) return version.status();
      if (context.json) {
        print_json({{"approved", flags->version}, {"version", *version}});
      } else {
        std::cout << "approved " << flags->version << '\n';
        print_version(context, *version);
      }
      return {};
    });
  });
}

}  // namespace

void register_directory_verbs(CLI::App& app, Context& context) {
  CLI::App* directory =
      app.add_subcommand("directory", "The directory as a whole, after a restore");
  directory->require_subcommand(1);
  register_rebase(*directory, context);
  register_approve(app, context);
}

}  // namespace fingerpost
