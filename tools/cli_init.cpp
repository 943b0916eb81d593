// fingerpost init
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_init.h"

namespace fingerpost {
namespace {

struct InitFlags {
  InitOptions options;
  std::string fallback;
};

void run_init(Context& context, const InitFlags& flags) {
  run_verb(context, [&]() -> Status {
    InitOptions options = flags.options;
    options.fallback = flags.fallback == "hash"                              ? Fallback::hash
                       : flags.fallback == "buckets" || options.buckets != 0 ? Fallback::buckets
                                                                             : Fallback::none;
    Status usage = check_init_options(options);
    if (usage.ok() && flags.fallback == "none" && options.buckets != 0) {
      usage = {Code::refused, "--buckets goes with --fallback buckets only"};
    }
    const Result<std::string> url = directory_url(context);
    if (!url) usage = url.status();
    if (!usage.ok()) {
      report_error(context, usage);
      context.answer(ExitStatus::usage);
      return {};
    }
    const Result<InitResult> made = init_directory(*url, options);
    if (!made) return made.status();
    if (context.json) {
      print_json({{"directory_id", to_string(made->directory_id)}, {"version", made->version}});
    } else {
      std::cout << "directory " << to_string(made->directory_id) << '\n';
      print_version(context, made->version);
    }
    return {};
  });
}

}  // namespace

void register_init_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<InitFlags>();
  CLI::App* verb = add_directory_verb(
      app, "init",
      "Make a directory. What answers for tenants without an entry of their own is chosen here, "
      "and never changes",
      "fingerpost init --directory sqlite:/var/lib/fingerpost/orders.db --buckets 1024\n"
      "  fingerpost init --directory orders.db --fallback hash --hash-shards s1,s2,s3   # then: "
      "shard set s1 --primary …",
      context);
  verb->add_option(
          "--buckets", flags->options.buckets,
          "Tenants without an entry fall into one of N buckets (implies --fallback buckets)")
      ->type_name("N")
      ->check(whole_number(1, kBucketsMax));
  verb->add_option("--fallback", flags->fallback,
                   "none: they are unknown (default) · buckets · hash: the hash of the id picks "
                   "one of --hash-shards")
      ->type_name("RULE")
      ->check(CLI::IsMember({"none", "buckets", "hash"}));
  verb->add_option("--hash-shards", flags->options.hash_shards,
                   "The shards of the hash rule, in an order that is fixed for ever; they are "
                   "added to the topology")
      ->type_name("A,B,…")
      ->delimiter(',');
  verb->add_option("--group", flags->options.group,
                   "Let this group read and write: file mode 0660, in a setgid folder of that "
                   "group (made if missing)")
      ->type_name("GROUP");
  verb->callback([flags, &context] { run_init(context, *flags); });
}

}  // namespace fingerpost
