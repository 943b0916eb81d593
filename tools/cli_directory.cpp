// fingerpost directory rebase, fingerpost approve
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "reader/reader.h"
#include "syncer/host_approval.h"
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
      ->required()
      ->check(whole_number(0, UINT64_MAX));
  verb->callback([above, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return answer_version(context, rebase_directory(directory, *above));
    });
  });
}

struct ApproveFlags {
  std::uint64_t version = 0;
  std::string who;
  std::string this_host;
};

Status approve_for_every_host(const Context& context, Directory& directory,
                              const ApproveFlags& flags) {
  const Result<std::uint64_t> version = approve_version(directory, flags.version, flags.who);
  if (!version) return version.status();
  if (context.json) {
    print_json({{"approved", flags.version}, {"version", *version}});
  } else {
    std::cout << "approved " << flags.version << '\n';
    print_version(context, *version);
  }
  return {};
}

Status approve_for_this_host(const Context& context, const ApproveFlags& flags) {
  const Result<Reader> reader = Reader::open(flags.this_host);
  if (!reader.ok()) return reader.status();
  const SegmentStatus served = reader->status();
  if (Status s = write_host_approval(served.path,
                                     {served.directory_id, served.incarnation, flags.version});
      !s.ok()) {
    return s;
  }
  if (context.json) {
    print_json({{"approved", flags.version}, {"this_host", flags.this_host}});
  } else {
    fmt::print("approved {} for {}\n", flags.version, served.path);
  }
  return {};
}

void register_approve(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ApproveFlags>();
  CLI::App* verb = add_directory_verb(
      app, "approve",
      "Let every host, or this one alone, apply what its poison guard withholds, up to a version: "
      "the log of the syncer names it",
      "fingerpost approve 1843002 --as mia\n  fingerpost approve 1843002 --this-host orders",
      context);
  verb->add_option("VERSION", flags->version, "Up to this one")
      ->required()
      ->check(whole_number(0, UINT64_MAX));
  CLI::Option* who =
      verb->add_option("--as", flags->who, "Who approves (else user@host)")->type_name("WHO");
  verb->add_option("--this-host", flags->this_host,
                   "Only here, without the directory: for the segment NAME, in the history that it "
                   "serves now. Run it as the syncer's user or as root")
      ->type_name("NAME")
      ->excludes(who);
  verb->callback([flags, &context] {
    if (!flags->this_host.empty()) {
      run_verb(context, [&]() -> Status { return approve_for_this_host(context, *flags); });
      return;
    }
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return approve_for_every_host(context, directory, *flags);
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
