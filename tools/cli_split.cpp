// fingerpost tenant split|merge|parts
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_moves.h"
#include "tools/directory_splits.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

struct Flags {
  std::string id;
  std::uint32_t parts = 1;
};

using SplitFunction = Result<std::uint64_t> (*)(Directory&, std::string_view, std::uint32_t);

CLI::Option* add_change(CLI::App& tenant, Context& context, const std::string& name,
                        const std::string& description, const std::string& example,
                        const std::string& about_parts, SplitFunction function) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_directory_verb(tenant, name, description, example, context);
  verb->add_option("ID", flags->id, "The tenant")->required();
  CLI::Option* parts = verb->add_option("--parts", flags->parts, about_parts)
                           ->type_name("N")
                           ->check(whole_number(0, UINT32_MAX));
  verb->callback([flags, function, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return answer_version(context, function(directory, flags->id, flags->parts));
    });
  });
  return parts;
}

void print_part(const Context& context, std::size_t part, const TenantRow& row) {
  if (context.json) {
    print_json({{"part", part},
                {"id", row.id},
                {"shard", row.shard},
                {"state", row.state},
                {"target", text_or_null(row.target)},
                {"epoch", row.epoch},
                {"updated_at", row.updated_at}});
    return;
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", part, row.shard, row.state, row.target,
                           row.epoch, row.updated_at);
}

Status show_parts(Context& context, Directory& directory, const std::string& id) {
  const std::vector<TenantRow> rows = list_parts(directory, id);
  for (std::size_t part = 0; part < rows.size(); ++part) print_part(context, part, rows[part]);
  if (rows.empty()) answer_no(context, "tenant " + in_quotes(id) + " is not split");
  return {};
}

}  // namespace

void register_split_verbs(CLI::App& tenant, Context& context) {
  add_change(tenant, context, "split",
             "Divide a tenant into parts, by a hash of the objects. Moves no data: all parts begin "
             "on the shard where the tenant is, and are moved one by one with move ... --part. " +
                 std::string(kMoveWarning),
             "fingerpost tenant split acme --parts 4\n"
             "  fingerpost tenant split acme --parts 8\n"
             "  fingerpost move mark acme --part 5 --to s2\n"
             "\n"
             "An object belongs to part xxh3_64(object) mod N. A split tenant grows to a multiple "
             "of its parts only: each new\n"
             "part is on the shard of the one that its objects come from. Refused while a part is "
             "being moved.",
             "How many, 2 to 1024", split_tenant)
      ->required();
  add_change(tenant, context, "merge",
             "Merge the parts of a split tenant into fewer, where those that become one are on the "
             "same shard already. Moves no data",
             "fingerpost tenant merge acme\n  fingerpost tenant merge acme --parts 2",
             "How many are left, a divisor of what there are (default 1: it is not split any more)",
             merge_tenant);

  auto id = std::make_shared<std::string>();
  CLI::App* parts = add_directory_verb(
      tenant, "parts",
      "List the parts of a split tenant: number, shard, state, target, epoch, time of the last "
      "change",
      "fingerpost tenant parts acme --json", context);
  parts->add_option("ID", *id, "The tenant")->required();
  parts->callback([id, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return show_parts(context, directory, *id);
    });
  });
}

}  // namespace fingerpost
