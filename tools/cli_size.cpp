// fingerpost size
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shm/number_text.h"
#include "shm/packed_id.h"
#include "shm/table_needs.h"
#include "shm/tenant_id.h"
#include "tools/cli_verbs.h"

namespace fingerpost {
namespace {

constexpr const char* kExample =
    "fingerpost size --tenants 10000000 --id-bytes 36 --workers 64\n"
    "  fingerpost size --tenants 1000000 --id-bytes 80 --json\n"
    "\n"
    "Computed, not measured: asks no directory and no segment. Memory is one copy for the host, "
    "whatever the number of workers; page tables are each worker's own.";

// A page table of 4,096 bytes maps 2 MiB in pages of 4 KiB; one above it, 1 GiB in such tables.
constexpr std::uint64_t kPageBytes = 4'096;
constexpr std::uint64_t kEntriesPerPage = kPageBytes / 8;

struct Flags {
  std::uint64_t tenants = 0;
  std::uint64_t id_bytes = 36;
  std::uint64_t workers = 1;
  std::uint64_t buckets = 0;
  std::uint64_t capacity = kCapacityDefault;
};

struct Size {
  std::string key;
  std::uint64_t bytes;
  std::string text;
};

constexpr std::uint64_t page_table_bytes(std::uint64_t touched) {
  const std::uint64_t tables = touched / (kEntriesPerPage * kPageBytes) + 1;
  return (tables + tables / kEntriesPerPage + 1) * kPageBytes;
}

std::vector<Size> sizes_for(const Flags& flags, const SegmentPlan& plan) {
  const std::uint64_t tail_words = IdShape<StdAtomics>::tail_words(flags.id_bytes);
  TableNeeds needs;
  needs.entries = flags.tenants;
  needs.record_words = flags.tenants * tail_words;
  needs.fallback_count = flags.buckets;
  const Geometry table = geometry_for(needs);
  const std::uint64_t fixed = plan.fixed_bytes();
  const std::uint64_t half = reserved_for(table);
  // The next generation, made when this one has as many entries as it may.
  const auto most =
      static_cast<std::uint64_t>(kRebuildLoad * static_cast<double>(table.slot_count()));
  TableNeeds grown = needs;
  grown.entries = std::min(entries_of_next(table.slot_count(), most), plan.capacity);
  grown.record_words = most * tail_words;
  const std::uint64_t next_half = std::min(reserved_for(geometry_for(grown)), plan.half_bytes);
  const std::uint64_t page_tables = page_table_bytes(fixed + half);
  return {
      {"table_bytes", table.bytes(), "the table itself"},
      {"loaded_bytes", fixed + half, "reserved once it is loaded"},
      {"both_halves_bytes", fixed + 2 * half, "and after the first rebuild, for good"},
      {"growth_peak_bytes", fixed + half + next_half, "and while it grows by a quarter"},
      {"successor_peak_bytes", 2 * fixed + 3 * half,
       "and while another segment takes over its name"},
      {"address_space_bytes", plan.span_bytes, "address space, each worker"},
      {"page_table_bytes", page_tables, "page tables, each worker that touched all of the table"},
      {"page_tables_of_all_bytes", page_tables * flags.workers, "page tables, all workers"},
  };
}

Status print_sizes(const Context& context, const Flags& flags) {
  const SegmentPlan plan = SegmentPlan::make(std::max(flags.capacity, flags.tenants));
  const std::vector<Size> sizes = sizes_for(flags, plan);
  if (sizes.front().bytes > plan.half_bytes) {
    return {Code::refused,
            fmt::format("{} ids of {} bytes need {} bytes of table, a segment for {} "
                        "entries holds {}: give a larger --capacity",
                        grouped(flags.tenants), flags.id_bytes, grouped(sizes.front().bytes),
                        grouped(plan.capacity), grouped(plan.half_bytes))};
  }
  if (context.json) {
    nlohmann::json object = {{"tenants", flags.tenants},
                             {"id_bytes", flags.id_bytes},
                             {"workers", flags.workers},
                             {"capacity", plan.capacity}};
    for (const Size& size : sizes) object[size.key] = size.bytes;
    print_json(object);
    return {};
  }
  for (const Size& size : sizes)
    std::cout << fmt::format("{:>22}  {}\n", grouped(size.bytes), size.text);
  return {};
}

}  // namespace

void register_size_verb(CLI::App& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb =
      add_verb(app, "size", "Compute what a segment takes, before there is one", kExample, context);
  verb->add_option("--tenants", flags->tenants, "Entries of the directory")
      ->required()
      ->check(whole_number(0, kCapacityMax));
  verb->add_option("--id-bytes", flags->id_bytes, "Length of a tenant's id (default 36)")
      ->check(whole_number(1, kIdBytesMax));
  verb->add_option("--workers", flags->workers, "Processes that map it (default 1)")
      ->check(whole_number(0, 1'000'000));
  verb->add_option("--buckets", flags->buckets, "Of the directory (default 0)")
      ->check(whole_number(0, kBucketsMax));
  verb->add_option("--capacity", flags->capacity,
                   "As given to fingerpostd (default 16,777,216, or the tenants if they are more)")
      ->check(whole_number(1, kCapacityMax));
  verb->callback(
      [flags, &context] { run_verb(context, [&] { return print_sizes(context, *flags); }); });
}

}  // namespace fingerpost
