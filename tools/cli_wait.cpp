// fingerpost wait
#include <memory>

#include "tools/cli_segment.h"
#include "tools/cli_verbs.h"

namespace fingerpost {
namespace {

struct Flags {
  std::string name;
  std::uint64_t version = 0;
  std::chrono::milliseconds timeout{5'000};
};

Status wait(Context& context, const Flags& flags) {
  const Result<Reader> reader = Reader::open(flags.name);
  if (!reader) return reader.status();
  const Status status = reader->wait_version(flags.version, flags.timeout);
  if (status.code() == Code::timeout || status.code() == Code::other_history) {
    report_error(context, {status.code(), flags.name + ": " + status.message()});
    context.answer(ExitStatus::no);
    return {};
  }
  if (status.ok()) print_version(context, reader->version());
  return status;
}

}  // namespace

void register_wait_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_segment_verb(
      app, "wait", "Wait until a segment serves a version, as a changing verb printed it",
      "fingerpost wait orders --version 42 --timeout 5s\n"
      "\n"
      "Prints the version that is served.\n"
      "Exit status: 0 it is served. 1 not in time, or the directory's history changed meanwhile.",
      context, flags->name);
  verb->add_option("--version", flags->version, "The version, or any later one")
      ->type_name("V")
      ->required();
  add_timeout(*verb, flags->timeout, "How long at most");
  verb->callback([flags, &context] { run_verb(context, [&] { return wait(context, *flags); }); });
}

}  // namespace fingerpost
