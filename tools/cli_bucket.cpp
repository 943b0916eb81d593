// fingerpost bucket assign|list
#include <fmt/format.h>

#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_buckets.h"

namespace fingerpost {
namespace {

struct AssignFlags {
  std::vector<std::string> shards;
  std::string range;
};

// "FIRST-LAST"
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_range(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return value;
  };
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number(text.substr(0, dash));
  const auto last = number(text.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

void run_assign(Context& context, const AssignFlags& flags) {
  const auto range = parse_range(flags.range);
  if (!flags.range.empty() && !range) {
    report_error(context, {Code::refused, "--range " + flags.range + " is not FIRST-LAST"});
    context.answer(ExitStatus::usage);
    return;
  }
  run_directory_verb(context, [&](Directory& directory) -> Status {
    const Result<AssignResult> result = assign_buckets(directory, flags.shards, range);
    if (!result) return result.status();
    if (context.json) {
      print_json({{"assigned", result->assigned}, {"version", result->version}});
    } else {
      std::cout << "assigned " << result->assigned << '\n';
      print_version(context, result->version);
    }
    return {};
  });
}

void print_bucket(const Context& context, const BucketRow& row) {
  if (context.json) {
    print_json({{"bucket", row.bucket},
                {"shard", text_or_null(row.shard)},
                {"state", text_or_null(row.state)},
                {"target", text_or_null(row.target)},
                {"epoch", row.shard.empty() ? nlohmann::json() : nlohmann::json(row.epoch)}});
    return;
  }
  if (row.shard.empty()) {
    std::cout << row.bucket << "\tunassigned\n";
    return;
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\n", row.bucket, row.shard, row.state, row.target,
                           row.epoch);
}

}  // namespace

void register_bucket_verbs(CLI::App& app, Context& context) {
  CLI::App* bucket = app.add_subcommand(
      "bucket", "The buckets, which answer for tenants without an entry of their own");
  bucket->require_subcommand(1);

  auto flags = std::make_shared<AssignFlags>();
  CLI::App* assign = add_directory_verb(
      *bucket, "assign",
      "Give every unassigned bucket a shard, by weight. Never moves one that has a shard",
      "fingerpost bucket assign\n  fingerpost bucket assign --shard s9 --range 0-127", context);
  assign->add_option("--shard", flags->shards, "Assign to this shard only; once for each")
      ->type_name("NAME")
      ->allow_extra_args(false);
  assign->add_option("--range", flags->range, "Look at these buckets only, both ends included")
      ->type_name("FIRST-LAST");
  assign->callback([flags, &context] { run_assign(context, *flags); });

  CLI::App* list =
      add_directory_verb(*bucket, "list", "List all buckets: number, shard, state, target, epoch",
                         "fingerpost bucket list --json", context);
  list->callback([&context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      const Result<std::vector<BucketRow>> rows = list_buckets(directory);
      if (!rows) return rows.status();
      for (const BucketRow& row : *rows) print_bucket(context, row);
      return {};
    });
  });
}

}  // namespace fingerpost
