// fingerpost wait
#include <memory>
#include <optional>

#include "tools/cli_route.h"
#include "tools/cli_segment.h"
#include "tools/cli_verbs.h"

namespace fingerpost {
namespace {

constexpr const char* kExample =
    "fingerpost wait orders --version 42 --timeout 5s\n"
    "  fingerpost wait orders --writable acme\n"
    "  fingerpost wait orders --newer acme --epoch 41 --object invoice-4711\n"
    "\n"
    "Prints the version that is served, or the tenant's route as resolve does.\n"
    "Exit status: 0 it is so. 1 not in time, or the directory's history changed meanwhile. 3 not "
    "an "
    "id.";

struct Flags {
  std::string name;
  std::optional<std::uint64_t> version;
  std::string writable;
  std::string newer;
  std::optional<std::uint64_t> epoch;
  std::optional<std::string> object;
  std::chrono::milliseconds timeout{5'000};

  const std::string& id() const { return writable.empty() ? newer : writable; }
};

Result<Route> wait_for_route(const Reader& reader, const Flags& flags) {
  const std::string& id = flags.id();
  if (flags.writable.empty()) {
    return flags.object ? reader.wait_newer(id, *flags.object, *flags.epoch, flags.timeout)
                        : reader.wait_newer(id, *flags.epoch, flags.timeout);
  }
  return flags.object ? reader.wait_writable(id, *flags.object, flags.timeout)
                      : reader.wait_writable(id, flags.timeout);
}

Status wait(Context& context, const Flags& flags) {
  const Result<Reader> reader = Reader::open(flags.name);
  if (!reader) return reader.status();
  Status status;
  if (flags.version) {
    status = reader->wait_version(*flags.version, flags.timeout);
    if (status.ok()) print_version(context, reader->version());
  } else {
    const Result<Route> route = wait_for_route(*reader, flags);
    status = route.status();
    if (status.ok()) print_route(context, *reader, flags.id(), *route);
  }
  if (status.code() != Code::timeout && status.code() != Code::other_history) return status;
  report_error(context, {status.code(), flags.name + ": " + status.message()});
  context.answer(ExitStatus::no);
  return {};
}

}  // namespace

void register_wait_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_segment_verb(
      app, "wait", "Wait until a segment serves a version, or a tenant is writable or newer",
      kExample, context, flags->name);
  auto* what = verb->add_option_group("What to wait for");
  what->require_option(1);
  what->add_option("--version", flags->version,
                   "This version or any later one, as a changing verb printed it")
      ->type_name("V")
      ->check(whole_number(0, UINT64_MAX));
  what->add_option("--writable", flags->writable, "Until writes may go to this tenant's shard")
      ->type_name("ID");
  CLI::Option* newer =
      what->add_option("--newer", flags->newer, "Until this tenant's route is newer than --epoch")
          ->type_name("ID");
  CLI::Option* epoch = verb->add_option("--epoch", flags->epoch, "The epoch that is known")
                           ->type_name("E")
                           ->check(whole_number(0, UINT64_MAX));
  newer->needs(epoch);
  epoch->needs(newer);
  verb->add_option("--object", flags->object,
                   "Of a split tenant, the part that this object belongs to; others ignore it");
  add_timeout(*verb, flags->timeout, "How long at most");
  verb->callback([flags, &context] { run_verb(context, [&] { return wait(context, *flags); }); });
}

}  // namespace fingerpost
