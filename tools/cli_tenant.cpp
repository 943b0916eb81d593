// fingerpost tenant create|get|list|delete
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_tenants.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

void print_tenant(const Context& context, const TenantRow& row) {
  if (context.json) {
    print_json({{"id", row.id},
                {"shard", row.shard},
                {"state", row.state},
                {"target", row.target.empty() ? nlohmann::json() : nlohmann::json(row.target)},
                {"epoch", row.epoch},
                {"updated_at", row.updated_at}});
    return;
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", row.id, row.shard, row.state, row.target,
                           row.epoch, row.updated_at);
}

void answer_no(Context& context, const std::string& message) {
  report_error(context, {Code::absent, message});
  context.answer(ExitStatus::no);
}

void get(Context& context, Directory& directory, const std::string& id) {
  const Result<std::optional<TenantRow>> row = get_tenant(directory, id);
  if (!row) {
    report_error(context, row.status());
    context.answer(exit_status_of(row.status().code()));
  } else if (*row) {
    print_tenant(context, **row);
  } else {
    const std::string bucket = directory.bucket_of(id);
    answer_no(context, "tenant " + in_quotes(id) + " has no entry" +
                           (bucket.empty() ? "" : " of its own; " + bucket + " answers for it"));
  }
}

void register_create(CLI::App& tenant, Context& context) {
  struct Flags {
    std::string id;
    std::string shard;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* create = add_directory_verb(
      tenant, "create", "Put a new tenant on a shard; one that was deleted may come back on any",
      "fingerpost tenant create acme --shard s1", context);
  create->add_option("ID", flags->id, "The tenant")->required();
  create->add_option("--shard", flags->shard, "The shard that has, or will have, its data")
      ->type_name("NAME")
      ->required();
  create->callback([flags, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<std::uint64_t> version = create_tenant(directory, flags->id, flags->shard);
      if (!version) return version.status();
      print_version(context, *version);
      return {};
    });
  });
}

void register_get(CLI::App& tenant, Context& context) {
  auto ids = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = add_directory_verb(tenant, "get",
                                      "Show entries as the directory has them: id, shard, state, "
                                      "target, epoch, time of the last change",
                                      "fingerpost tenant get acme --json", context);
  verb->add_option("ID", *ids, "The tenants")->required();
  verb->callback([ids, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      for (const std::string& id : *ids) get(context, directory, id);
      return {};
    });
  });
}

void register_list(CLI::App& tenant, Context& context) {
  auto page = std::make_shared<TenantPage>();
  CLI::App* list = add_directory_verb(
      tenant, "list", "List the entries of tenants in the order of their ids' bytes",
      "fingerpost tenant list --prefix eu- --limit 100 --after eu-9041", context);
  list->add_option("--prefix", page->prefix, "Only ids that begin with this")->type_name("TEXT");
  list->add_option("--limit", page->limit, "At most so many")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  list->add_option("--after", page->after, "Only ids after this one: the last of the page before")
      ->type_name("ID");
  list->callback([page, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      list_tenants(directory, *page, [&](const TenantRow& row) { print_tenant(context, row); });
      return {};
    });
  });
}

void register_delete(CLI::App& tenant, Context& context) {
  auto id = std::make_shared<std::string>();
  CLI::App* verb =
      add_directory_verb(tenant, "delete", "Say that a tenant is gone. Its entry stays and says so",
                         "fingerpost tenant delete acme", context);
  verb->add_option("ID", *id, "The tenant")->required();
  verb->callback([id, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<std::uint64_t> version = delete_tenant(directory, *id);
      if (version) {
        print_version(context, *version);
      } else if (version.status().code() == Code::absent) {
        answer_no(context, version.status().message());
      } else {
        return version.status();
      }
      return {};
    });
  });
}

}  // namespace

void register_tenant_verbs(CLI::App& app, Context& context) {
  CLI::App* tenant = app.add_subcommand("tenant", "Single tenants");
  tenant->require_subcommand(1);
  register_create(*tenant, context);
  register_get(*tenant, context);
  register_list(*tenant, context);
  register_delete(*tenant, context);
}

}  // namespace fingerpost
