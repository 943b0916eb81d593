// fingerpost shard add|set|list|report|remove
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

struct ShardFlags {
  std::string name;
  std::string primary;
  std::vector<std::string> replicas;
  std::string region;
  std::uint32_t weight = 0;
  std::vector<std::string> attributes;
};

void add_edit_options(CLI::App* verb, ShardFlags& flags) {
  verb->add_option("NAME", flags.name, "The shard's logical name")->required();
  verb->add_option("--primary", flags.primary,
                   "Where writes go: host:port, or whatever the workers understand")
      ->type_name("ADDRESS");
  verb->add_option("--replica", flags.replicas,
                   "Where reads may go; once for each, in order. The list replaces the one before; "
                   "'' alone empties it")
      ->type_name("ADDRESS")
      ->allow_extra_args(false);
  verb->add_option("--region", flags.region, "Where it stands")->type_name("REGION");
  verb->add_option("--weight", flags.weight,
                   "Its share of new tenants and buckets (default 100); 0 takes none")
      ->type_name("N")
      ->check(whole_number(0, UINT32_MAX));
  verb->add_option("--attr", flags.attributes,
                   "An attribute for the workers; once for each. NAME= removes it")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

Result<ShardEdit> edit_of(const CLI::App& verb, const ShardFlags& flags) {
  ShardEdit edit;
  if (verb.count("--primary") != 0) edit.primary = flags.primary;
  if (verb.count("--replica") != 0) {
    const bool emptied = flags.replicas.size() == 1 && flags.replicas.front().empty();
    edit.replicas = emptied ? std::vector<std::string>() : flags.replicas;
  }
  if (verb.count("--region") != 0) edit.region = flags.region;
  if (verb.count("--weight") != 0) edit.weight = flags.weight;
  for (const std::string& attribute : flags.attributes) {
    const std::size_t equals = attribute.find('=');
    if (equals == std::string::npos) {
      return Status(Code::refused, "--attr " + in_quotes(attribute) + " is not NAME=VALUE");
    }
    edit.attributes.emplace_back(attribute.substr(0, equals), attribute.substr(equals + 1));
  }
  return edit;
}

ShardSpec named(const std::string& name) {
  ShardSpec spec;
  spec.name = name;
  return spec;
}

void print_shard(const Context& context, const ShardRow& row) {
  const ShardSpec& spec = row.spec;
  if (context.json) {
    nlohmann::json attributes = nlohmann::json::object();
    for (const auto& [name, value] : spec.attributes) attributes[name] = value;
    print_json({{"shard", spec.name},
                {"primary", spec.primary},
                {"replicas", spec.replicas},
                {"region", spec.region},
                {"weight", spec.weight},
                {"attributes", attributes},
                {"tenants", row.tenants},
                {"load", row.reported ? nlohmann::json(*row.reported) : nlohmann::json()},
                {"reported_at", text_or_null(row.reported_at)},
                {"epoch", row.epoch}});
    return;
  }
  std::string attributes;
  for (const auto& [name, value] : spec.attributes) {
    attributes += fmt::format("{}{}={}", attributes.empty() ? "" : ",", name, value);
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", spec.name, spec.primary,
                           fmt::join(spec.replicas, ","), spec.region, spec.weight, attributes,
                           row.tenants, row.epoch,
                           row.reported ? fmt::format("{}", *row.reported) : "");
}

CLI::Validator not_below_zero() {
  return {[](const std::string& text) -> std::string {
            return text.starts_with('-') ? in_quotes(text) + " is below 0" : "";
          },
          ""};
}

void register_report(CLI::App& shard, Context& context) {
  struct Flags {
    std::string name;
    double load = 0;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* report = add_directory_verb(
      shard, "report",
      "Say how loaded a shard is, in tenants' worth: 1.0 is an average tenant. tenant create goes "
      "by this where it is more than the number of tenants there",
      "fingerpost shard report s1 --load 1250.5", context);
  report->add_option("NAME", flags->name, "The shard")->required();
  report->add_option("--load", flags->load, "In tenants' worth; the last report counts")
      ->type_name("X")
      ->required()
      ->check(not_below_zero());
  report->callback([flags, &context] {
    run_directory_verb(context, [&](Directory& directory) {
      return answer_version(context, report_load(directory, flags->name, flags->load));
    });
  });
}

}  // namespace

void register_shard_verbs(CLI::App& app, Context& context) {
  CLI::App* shard = app.add_subcommand("shard", "The topology: which shards there are, and where");
  shard->require_subcommand(1);

  auto add_flags = std::make_shared<ShardFlags>();
  CLI::App* add = add_directory_verb(
      *shard, "add", "Add a shard",
      "fingerpost shard add s1 --primary db1:5432 --replica db2:5432 --region eu --attr tier=gold",
      context);
  add_edit_options(add, *add_flags);
  add->callback([add, add_flags, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<ShardEdit> edit = edit_of(*add, *add_flags);
      if (!edit) return edit.status();
      const Result<ShardSpec> spec = edited(named(add_flags->name), *edit);
      if (!spec) return spec.status();
      return answer_version(context, add_shard(directory, *spec));
    });
  });

  auto set_flags = std::make_shared<ShardFlags>();
  CLI::App* set = add_directory_verb(*shard, "set",
                                     "Change a shard, as after a failover. What is not given stays",
                                     "fingerpost shard set s1 --primary db2:5432", context);
  add_edit_options(set, *set_flags);
  set->callback([set, set_flags, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<ShardEdit> edit = edit_of(*set, *set_flags);
      if (!edit) return edit.status();
      return answer_version(context, set_shard(directory, set_flags->name, *edit));
    });
  });

  CLI::App* list = add_directory_verb(
      *shard, "list",
      "List the shards: name, primary, replicas, region, weight, attributes, tenants, epoch, "
      "reported load",
      "fingerpost shard list --json", context);
  list->callback([&context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<std::vector<ShardRow>> rows = list_shards(directory);
      if (!rows) return rows.status();
      for (const ShardRow& row : *rows) print_shard(context, row);
      return {};
    });
  });

  register_report(*shard, context);

  auto removed = std::make_shared<std::string>();
  CLI::App* remove =
      add_directory_verb(*shard, "remove", "Remove a shard that nothing names any more",
                         "fingerpost shard remove s1", context);
  remove->add_option("NAME", *removed, "The shard")->required();
  remove->callback([removed, &context] {
    run_directory_verb(context, [&](Directory& directory) {
      return answer_version(context, remove_shard(directory, *removed));
    });
  });
}

}  // namespace fingerpost
