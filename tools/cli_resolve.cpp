// fingerpost resolve
#include <iostream>
#include <memory>
#include <optional>

#include "tools/cli_explain.h"
#include "tools/cli_route.h"
#include "tools/cli_segment.h"
#include "tools/cli_verbs.h"

namespace fingerpost {
namespace {

constexpr const char* kExample =
    "fingerpost resolve orders acme\n"
    "  fingerpost resolve orders acme --object invoice-4711\n"
    "  fingerpost tenant list --json | jq -r .id | fingerpost resolve orders - --json\n"
    "  fingerpost resolve orders acme --explain --directory sqlite:orders.db\n"
    "\n"
    "Columns: id, status, shard, primary, state, target, epoch, source. Only the first two where "
    "there is no route.\n"
    "A split tenant has no shard of its own: --object shows the part that an object belongs to.\n"
    "With --explain, lines (with --json a second object) say which rule and row answered, and what "
    "would without the\n"
    "tenant's own entry, with --object of that object's part; with a directory at hand, what the "
    "row "
    "is now, since when\n"
    "and by whom.\n"
    "Exit status: 0 found. 1 unknown, deleted or split. 3 not an id (with --json, `reason` says "
    "why). 5 undetermined.\n"
    "Of several ids the worst decides. A stale segment still answers, and is named on standard "
    "error.";

ExitStatus exit_status_of(Answer answer) {
  switch (answer) {
    case Answer::found:
      return ExitStatus::done;
    case Answer::unknown:
    case Answer::deleted:
    case Answer::split:
      return ExitStatus::no;
    case Answer::refused:
      return ExitStatus::refused;
    case Answer::undetermined:
      break;
  }
  return ExitStatus::internal;  // only bytes that make no sense disturb a lookup that often
}

struct Asked {
  std::optional<std::string> object;
  bool explained = false;
};

void resolve_one(Context& context, const Reader& reader, const std::string& id,
                 const Asked& asked) {
  const Route route = asked.object ? reader.resolve(id, *asked.object) : reader.resolve(id);
  print_route(context, reader, id, route);
  context.answer(exit_status_of(route.answer()));
  if (!asked.explained || route.answer() == Answer::refused) return;
  const Status status = print_explanation(context, reader, id, asked.object);
  if (status.ok()) return;
  report_error(context, status);
  context.answer(fingerpost::exit_status_of(status.code()));
}

Status resolve_all(Context& context, const std::string& name, const std::vector<std::string>& ids,
                   const Asked& asked) {
  const Result<Reader> reader = Reader::open(name);
  if (!reader) return reader.status();
  if (ids.size() == 1 && ids.front() == "-") {
    for (std::string id; std::getline(std::cin, id);) resolve_one(context, *reader, id, asked);
  } else {
    for (const std::string& id : ids) resolve_one(context, *reader, id, asked);
  }
  const Readiness readiness = reader->readiness();
  if (!context.json && !readiness.reason.empty()) {
    report_error(context, {Code::not_ready, name + " is " + text_of(readiness)});
  }
  return {};
}

}  // namespace

void register_resolve_verb(CLI::App& app, Context& context) {
  struct Flags {
    std::string name;
    std::vector<std::string> ids;
    Asked asked;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_segment_verb(app, "resolve", "Ask a segment, as a worker does", kExample,
                                    context, flags->name);
  verb->add_option("ID", flags->ids,
                   "The tenants; - alone reads them from standard input, one a line")
      ->required();
  verb->add_option("--object", flags->asked.object,
                   "Of a split tenant, the part that this object belongs to; others ignore it");
  verb->add_flag("--explain", flags->asked.explained,
                 "Say why: rule, row, version, age, and what it would be without the override");
  verb->add_option("--directory", context.directory_url,
                   "With --explain: look there too (else $FINGERPOST_DIRECTORY, if set)")
      ->type_name("URL");
  verb->callback([flags, &context] {
    run_verb(context, [&] { return resolve_all(context, flags->name, flags->ids, flags->asked); });
  });
}

}  // namespace fingerpost
