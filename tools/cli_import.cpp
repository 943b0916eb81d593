// fingerpost import
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "shm/unique_fd.h"
#include "tools/cli_verbs.h"
#include "tools/directory_import.h"
#include "tools/progress_bar.h"

namespace fingerpost {
namespace {

constexpr std::size_t kFaultsPrinted = 20;

struct ImportFlags {
  std::string file;
  bool dry_run = false;
};

void print_faults(const Context& context, const ImportReport& report) {
  const std::string summary =
      fmt::format("{} faults in {} rows; nothing was applied", report.fault_count, report.rows);
  if (context.json) {
    nlohmann::json faults = nlohmann::json::array();
    for (const ImportFault& fault : report.faults)
      faults.push_back({{"line", fault.line}, {"message", fault.message}});
    const nlohmann::json object = {
        {"error", summary},
        {"code", to_string(Code::refused)},
        {"faults", faults},
        {"faults_not_listed", report.fault_count - report.faults.size()}};
    std::cerr << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    return;
  }
  const std::size_t printed = std::min(kFaultsPrinted, report.faults.size());
  for (std::size_t i = 0; i < printed; ++i) {
    std::cerr << fmt::format("line {}: {}\n", report.faults[i].line, report.faults[i].message);
  }
  if (report.fault_count > printed)
    std::cerr << fmt::format("and {} more\n", report.fault_count - printed);
  std::cerr << "fingerpost: " << summary << '\n';
}

void print_report(const Context& context, const ImportReport& report, bool dry_run) {
  if (context.json) {
    print_json({{"dry_run", dry_run},
                {"rows", report.rows},
                {"inserted", report.inserted},
                {"unchanged", report.unchanged},
                {"repeated", report.repeated},
                {"shards", report.shards},
                {"splits", report.splits},
                {"pins", report.pins},
                {"version", report.version}});
    return;
  }
  std::cout << fmt::format("{} {}, {} in the directory already",
                           dry_run ? "would insert" : "inserted", report.inserted,
                           report.unchanged);
  if (report.repeated != 0) std::cout << fmt::format(", {} repeated in the file", report.repeated);
  for (const auto& [count, noun] :
       {std::pair(report.shards, "shards"), std::pair(report.splits, "splits"),
        std::pair(report.pins, "pins")}) {
    if (count != 0) std::cout << fmt::format(", {} {}", count, noun);
  }
  std::cout << '\n';
  print_version(context, report.version);
}

Status run_import(Context& context, Directory& directory, const ImportFlags& flags) {
  UniqueFd opened;
  int fd = STDIN_FILENO;
  if (flags.file != "-") {
    opened = UniqueFd(open(flags.file.c_str(), O_RDONLY | O_CLOEXEC));
    // Input that is not there is refused input; "unreachable" is the directory.
    if (!opened) {
      return {Code::refused, Status::from_errno(errno, "cannot import " + flags.file).message()};
    }
    fd = opened.get();
  }
  struct stat found {};
  if (fstat(fd, &found) == 0 && S_ISDIR(found.st_mode)) {
    return {Code::refused, "cannot import " + flags.file + ": it is a folder"};
  }
  const bool sized = S_ISREG(found.st_mode);
  const std::uint64_t total = sized ? static_cast<std::uint64_t>(found.st_size) : 0;
  ProgressBar bar(!context.json);
  std::uint64_t done = 0;
  const auto read_input = [&](char* bytes, std::size_t size) -> Result<std::size_t> {
    ssize_t got = 0;
    do {
      got = read(fd, bytes, size);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return Status::from_errno(errno, "read " + flags.file);
    done += static_cast<std::uint64_t>(got);
    bar.show("reading", done, total, "bytes");
    return static_cast<std::size_t>(got);
  };
  const auto show_insert = [&](std::uint64_t rows, std::uint64_t all) {
    bar.show("writing", rows, all, "rows");
  };
  const Result<ImportReport> report =
      import_directory(directory, read_input, {flags.dry_run, show_insert});
  bar.clear();
  if (!report) return report.status();
  if (report->fault_count != 0) {
    print_faults(context, *report);
    context.answer(ExitStatus::refused);
  } else {
    print_report(context, *report, flags.dry_run);
  }
  return {};
}

}  // namespace

void register_import_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* import = add_directory_verb(
      app, "import",
      "Insert entries from CSV or JSON Lines, all or nothing; every fault is listed with its line",
      "fingerpost import tenants.csv --dry-run\n  generate | fingerpost import -\n"
      "  fingerpost export --json --directory a.db | fingerpost import - --directory b.db\n"
      "\n"
      "CSV: the first line names the columns: entry_id and shard_id; state and target_shard may be "
      "there, and\n"
      "epoch and updated_at are passed over. UTF-8; lines end with LF, CRLF or CR. JSON Lines: an "
      "object a line\n"
      "with these names. What else an export says (layout, shards, splits, pins) has its kind in "
      "`kind`, and in\n"
      "CSV the rest in `details`. A row that says what the directory says already is accepted, so "
      "a "
      "run can be\n"
      "repeated; one that would change what is there is refused.\n"
      "Exit status: 0 applied. 3 faults, or the file is not there, a folder, or not readable. 4 "
      "the "
      "directory cannot be\n"
      "reached.",
      context);
  import->add_option("FILE", flags->file, "The file, or - for standard input")->required();
  import->add_flag("--dry-run", flags->dry_run, "Check everything, apply nothing");
  import->callback([flags, &context] {
    run_directory_verb(
        context, [&](Directory& directory) { return run_import(context, directory, *flags);
});
}  // namespace fingerpost
);
}

}  // namespace fingerpost
