// fingerpost check
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "shm/number_text.h"
#include "tools/cli_segment.h"
#include "tools/cli_verbs.h"
#include "tools/segment_check.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::size_t kDifferencesShown = 20;

constexpr const char* kExample =
    "fingerpost check orders --directory sqlite:orders.db\n"
    "\n"
    "Reads the directory in one transaction, waits until the segment serves that version, and "
    "compares. What the\n"
    "directory changes while this runs is left out, and counted. With --json one object for each "
    "difference, then\n"
    "one with the totals; without it at most 20 are shown. What the syncer has set aside differs, "
    "and "
    "is counted by\n"
    "itself: quarantined rows cannot be applied, withheld ones wait for `fingerpost approve`.\n"
    "Exit status: 0 they are equal. 1 they differ. 4 one of them cannot be read.";

struct Flags {
  std::string name;
  std::chrono::milliseconds timeout{5'000};
};

void print_difference_json(const Difference& difference) {
  print_json({{"kind", to_string(difference.kind)},
              {"id", text_or_null(difference.id)},
              {"directory", text_or_null(difference.directory)},
              {"segment", text_or_null(difference.segment)},
              {"why", text_or_null(difference.why)}});
}

void print_difference(const Difference& difference) {
  const auto side = [](const std::string& text) { return text.empty() ? "nothing" : text; };
  std::cout << fmt::format("{}{}{}: directory {}; segment {}{}\n", to_string(difference.kind),
                           difference.id.empty() ? "" : " ",
                           difference.id.empty() ? "" : in_quotes(difference.id),
                           side(difference.directory), side(difference.segment),
                           difference.why.empty() ? "" : " (" + difference.why + ")");
}

void print_report(const CheckReport& report) {
  const std::size_t count = report.differences.size();
  const std::size_t shown = std::min(count, kDifferencesShown);
  for (std::size_t i = 0; i < shown; ++i) print_difference(report.differences[i]);
  if (count > shown) {
    std::cout << fmt::format("and {} more; --json lists all\n", grouped(count - shown));
  }
  std::cout << fmt::format(
      "{}: {} entries, {} buckets or hash words and {} shards of the directory at version {}{}\n",
      count == 0 ? "equal"
                 : fmt::format("{} {}", grouped(count), count == 1 ? "difference" : "differences"),
      grouped(report.entries), grouped(report.fallback_words), grouped(report.shards),
      report.directory_version,
      report.changed_meanwhile == 0
          ? ""
          : fmt::format("; {} left out, since the directory changed them meanwhile",
                        grouped(report.changed_meanwhile)));
  if (report.quarantined != 0 || report.withheld != 0) {
    std::cout << "set aside by the syncer: " << set_aside_text(report.quarantined, report.withheld)
              << '\n';
  }
}

void print_report_json(const std::string& name, const CheckReport& report) {
  for (const Difference& difference : report.differences) print_difference_json(difference);
  print_json({{"name", name},
              {"equal", report.differences.empty()},
              {"differences", report.differences.size()},
              {"changed_meanwhile", report.changed_meanwhile},
              {"version", report.directory_version},
              {"segment_version", report.segment_version},
              {"entries", report.entries},
              {"fallback_words", report.fallback_words},
              {"shards", report.shards},
              {"quarantined", report.quarantined},
              {"withheld", report.withheld}});
}

Status check(Context& context, const std::string& url, const Flags& flags) {
  const Result<Reader> reader = Reader::open(flags.name);
  if (!reader) return reader.status();
  const auto source = open_source(url);
  if (!source) return source.status();
  const Result<CheckReport> report = check_segment(**source, *reader, flags.timeout);
  if (!report) return report.status();
  if (context.json) {
    print_report_json(flags.name, *report);
  } else {
    print_report(*report);
  }
  if (!report->differences.empty()) context.answer(ExitStatus::no);
  return {};
}

}  // namespace

void register_check_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_directory_verb(app, "check",
                                      "Compare a segment with its directory, every entry both ways",
                                      kExample, context);
  add_segment_name(*verb, flags->name);
  add_timeout(*verb, flags->timeout, "How long the segment may take to serve what was read");
  verb->callback([flags, &context] {
    run_verb(context, [&]() -> Status {
      const Result<std::string> url = directory_url(context);
      if (!url) {
        report_error(context, url.status());
        context.answer(ExitStatus::usage);
        return {};
      }
      return check(context, *url, *flags);
    });
  });
}

}  // namespace fingerpost
