// fingerpost history
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "shm/tenant_id.h"
#include "tools/cli_verbs.h"
#include "tools/directory_entry.h"
#include "tools/directory_history.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

struct Flags {
  std::string entry;
  std::uint64_t version = 0;
  bool at = false;
};

nlohmann::json as_json(const EntryImage& image) {
  if (image == EntryImage{}) return {};
  return {{"shard", image.shard}, {"state", image.state}, {"target", text_or_null(image.target)}};
}

std::string as_text(const EntryImage& image) {
  if (image == EntryImage{}) return "nothing";
  return image.shard + " " + image.state +
         (image.target.empty() ? std::string() : " to " + image.target);
}

void print_change(const Context& context, const EntryChange& change) {
  if (context.json) {
    print_json(
        {{"version", change.version},
         {"at", change.at},
         {"before", as_json(change.before)},
         {"after", as_json(change.after)},
         {"who", text_or_null(change.who)},
         {"verb", text_or_null(change.verb)},
         {"note", text_or_null(change.note)},
         {"frozen_ms", change.frozen_ms ? nlohmann::json(*change.frozen_ms) : nlohmann::json()}});
    return;
  }
  std::cout << fmt::format(
      "{}\t{}\t{} -> {}\t{}\t{}{}{}\n", change.version, change.at, as_text(change.before),
      as_text(change.after), change.verb.empty() ? "plain SQL" : change.verb, change.who,
      change.note.empty() ? "" : "\t" + change.note,
      change.frozen_ms ? "\tfrozen for " + spoken_duration(*change.frozen_ms) : "");
}

void answer_unknown(Context& context, Directory& directory, const std::string& what,
                    const std::string& entry) {
  const std::string bucket = directory.bucket_of(entry);
  const bool covered = !bucket.empty() && !why_not_tenant_id(entry);
  answer_no(context, what + (covered ? "; " + bucket + " answers where it has none" : ""));
}

Status show_all(Context& context, Directory& directory, const std::string& entry) {
  const Result<std::vector<EntryChange>> changes = entry_history(directory, entry);
  if (!changes) return changes.status();
  for (const EntryChange& change : *changes) print_change(context, change);
  if (changes->empty()) {
    answer_unknown(context, directory, in_quotes(entry) + " never had an entry", entry);
  }
  return {};
}

Status show_at(Context& context, Directory& directory, const Flags& flags) {
  const Result<std::optional<EntryChange>> found = entry_at(directory, flags.entry, flags.version);
  if (!found) return found.status();
  const std::optional<EntryChange>& change = *found;
  if (!change || change->after == EntryImage{}) {
    answer_unknown(
        context, directory,
        fmt::format("{} had no entry at version {}", in_quotes(flags.entry), flags.version),
        flags.entry);
  } else if (context.json) {
    print_json({{"id", flags.entry},
                {"shard", change->after.shard},
                {"state", change->after.state},
                {"target", text_or_null(change->after.target)},
                {"epoch", change->version},
                {"updated_at", change->at}});
  } else {
    std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", flags.entry, change->after.shard,
                             change->after.state, change->after.target, change->version,
                             change->at);
  }
  return {};
}

}  // namespace

void register_history_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_directory_verb(
      app, "history",
      "Show what became of an entry: version, time, before -> after, verb, who, and how long a "
      "freeze lasted",
      "fingerpost history acme\n  fingerpost history bucket:7 --at 1234 --json", context);
  verb->add_option("ID", flags->entry, "The tenant, bucket:N or part:K:TENANT")->required();
  CLI::Option* at = verb->add_option("--at", flags->version, "The entry as it was at that version")
                        ->type_name("VERSION")
                        ->check(whole_number(0, UINT64_MAX));
  verb->callback([flags, at, &context] {
    flags->at = at->count() > 0;
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return flags->at ? show_at(context, directory, *flags)
                       : show_all(context, directory, flags->entry);
    });
  });
}

}  // namespace fingerpost
