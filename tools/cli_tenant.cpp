// fingerpost tenant create|get|list|delete|forget|purge
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_removals.h"
#include "tools/directory_tenants.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

void print_tenant(const Context& context, const TenantRow& row) {
  if (context.json) {
    print_json({{"id", row.id},
                {"shard", row.shard},
                {"state", row.state},
                {"target", text_or_null(row.target)},
                {"epoch", row.epoch},
                {"updated_at", row.updated_at},
                {"parts", row.parts == 0 ? nlohmann::json() : nlohmann::json(row.parts)}});
    return;
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", row.id, row.shard, row.state, row.target,
                           row.epoch, row.updated_at);
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

// An empty value is a variable that was not set, and no wish to leave it open.
CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, ""};
}

void print_created(const Context& context, const Created& created, bool dry_run) {
  if (context.json) {
    print_json({{"shard", created.shard},
                {"written", created.written},
                {"answered_by", text_or_null(created.answered_by)},
                {"dry_run", dry_run},
                {"version", created.version}});
    return;
  }
  if (!created.answered_by.empty()) {
    std::cout << fmt::format("no entry {}: {} answers for it, shard {}\n",
                             dry_run ? "would be written" : "written", created.answered_by,
                             created.shard);
  } else {
    std::cout << (dry_run ? "would be on shard " : "shard ") << created.shard << '\n';
  }
  print_version(context, created.version);
}

void register_create(CLI::App& tenant, Context& context) {
  struct Flags {
    std::string id;
    CreateWish wish;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* create = add_directory_verb(
      tenant, "create", "Put a new tenant on a shard; one that was deleted may come back on any",
      "fingerpost tenant create acme --region eu\n"
      "  fingerpost tenant create acme --shard s1\n"
      "\n"
      "Without --shard it goes to the shard with the least max(tenants, reported load) / weight, "
      "of "
      "the region if one is\n"
      "given or the tenant is pinned to one. Where buckets or the hash rule answer, and neither is "
      "given, it needs no\n"
      "entry, and gets none.",
      context);
  create->add_option("ID", flags->id, "The tenant")->required();
  CLI::Option* shard =
      create->add_option("--shard", flags->wish.shard, "The shard that has, or will have, its data")
          ->type_name("NAME")
          ->check(not_empty());
  CLI::Option* region =
      create
          ->add_option("--region", flags->wish.region, "A shard of this region, by load and weight")
          ->type_name("REGION")
          ->check(not_empty());
  shard->excludes(region);
  create->add_flag("--dry-run", flags->wish.dry_run, "Say where it would go, write nothing");
  create->callback([flags, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<Created> created = create_tenant(directory, flags->id, flags->wish);
      if (created) {
        print_created(context, *created, flags->wish.dry_run);
      } else if (created.status().code() == Code::absent) {
        answer_no(context, created.status().message());
      } else {
        return created.status();
      }
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
      ->check(whole_number(1, INT64_MAX));
  list->add_option("--after", page->after, "Only ids after this one: the last of the page before")
      ->type_name("ID");
  list->callback([page, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      list_tenants(directory, *page, [&](const TenantRow& row) { print_tenant(context, row); });
      return {};
    });
  });
}

void print_deleted(const Context& context, const std::string& id, const Deleted& deleted) {
  if (context.json) {
    print_json({{"answered_by", text_or_null(deleted.answered_by)},
                {"shard", text_or_null(deleted.shard)},
                {"version", deleted.version}});
    return;
  }
  if (!deleted.answered_by.empty()) {
    std::cout << fmt::format(
        "{} had no entry, {} answered for it, shard {}: it has one now, DELETED\n", in_quotes(id),
        deleted.answered_by, deleted.shard);
  }
  print_version(context, deleted.version);
}

void register_delete(CLI::App& tenant, Context& context) {
  auto id = std::make_shared<std::string>();
  CLI::App* verb = add_directory_verb(
      tenant, "delete", "Say that a tenant is gone. Its entry stays and says so",
      "fingerpost tenant delete acme\n"
      "\n"
      "A tenant without an entry, for which its bucket or the hash rule answers, "
      "gets one that says so, and that\n"
      "is told. Exit status: 0 it is DELETED. 1 nothing answers for it. 3 it is "
      "being moved, or no id.",
      context);
  verb->add_option("ID", *id, "The tenant")->required();
  verb->callback([id, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<Deleted> deleted = delete_tenant(directory, *id);
      if (deleted) {
        print_deleted(context, *id, *deleted);
      } else if (deleted.status().code() == Code::absent) {
        answer_no(context, deleted.status().message());
      } else {
        return deleted.status();
      }
      return {};
    });
  });
}

void register_forget(CLI::App& tenant, Context& context) {
  auto id = std::make_shared<std::string>();
  CLI::App* verb = add_directory_verb(
      tenant, "forget",
      "Remove a tenant's own entry where its bucket, or the hash rule, names the same shard. "
      "Refused where it does not, and while either is being moved",
      "fingerpost tenant forget acme", context);
  verb->add_option("ID", *id, "The tenant")->required();
  verb->callback([id, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return answer_version(context, forget_tenant(directory, *id));
    });
  });
}

struct PurgeFlags {
  std::string id;
  bool all = false;
  std::chrono::milliseconds retention = std::chrono::hours(24 * 30);
};

Status purge(Context& context, Directory& directory, const PurgeFlags& flags) {
  if (!flags.all) {
    return answer_version(context, purge_tenant(directory, flags.id, flags.retention));
  }
  const PurgeReport report = purge_all(directory, flags.retention);
  if (context.json) {
    print_json({{"purged", report.purged}, {"held", report.held}, {"version", report.version}});
    return {};
  }
  std::cout << fmt::format("purged {}, {} left since their bucket is being moved\n", report.purged,
                           report.held);
  print_version(context, report.version);
  return {};
}

void register_purge(CLI::App& tenant, Context& context) {
  auto flags = std::make_shared<PurgeFlags>();
  CLI::App* verb = add_directory_verb(
      tenant, "purge",
      "Remove what has been DELETED for long enough. The id is unknown from then on, or resolves "
      "by its bucket or the hash rule again",
      "fingerpost tenant purge acme\n  fingerpost tenant purge --all --retention 90d", context);
  CLI::Option* id = verb->add_option("ID", flags->id, "The tenant");
  CLI::Option* all = verb->add_flag("--all", flags->all, "Every tenant for which it is time");
  id->excludes(all);
  add_duration_option(*verb, "--retention", flags->retention, "Only what is DELETED so long",
                      "30d");
  verb->callback([flags, &context] {
    if (flags->id.empty() && !flags->all) {
      report_error(context, {Code::refused, "tenant purge needs an ID, or --all"});
      context.answer(ExitStatus::usage);
      return;
    }
    run_directory_verb(
        context, [&](Directory& directory) -> Status { return purge(context, directory, *flags); });
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
  register_forget(*tenant, context);
  register_purge(*tenant, context);
  register_split_verbs(*tenant, context);
  register_pin_verbs(*tenant, context);
}

}  // namespace fingerpost
