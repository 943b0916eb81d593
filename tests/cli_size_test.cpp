#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "shm/owned_segment.h"
#include "tests/child_process.h"
#include "tests/run_program.h"

using namespace fingerpost;

namespace {

constexpr std::uint64_t kTenants = 200'000;
constexpr std::uint64_t kIdBytes = 60;

nlohmann::json computed(std::uint64_t tenants, std::uint64_t id_bytes) {
  const Ran ran =
      run_program(FINGERPOST_PROGRAM, {"size", "--tenants", std::to_string(tenants), "--id-bytes",
                                       std::to_string(id_bytes), "--workers", "3", "--json"});
  REQUIRE_MESSAGE(ran.status == 0, ran.err);
  return nlohmann::json::parse(ran.out);
}

std::uint64_t allocated(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

std::string id_of(std::uint64_t number) {
  std::string id = std::to_string(number);
  return id + std::string(kIdBytes - id.size(), 'x');
}

// A real segment with that many tenants of that length.
struct LoadedSegment {
  LoadedSegment() {
    SegmentIdentity identity;
    identity.plan = SegmentPlan::make(kCapacityDefault);
    auto made = OwnedSegment::create(path(), SegmentAccess::of_this_process(), identity);
    REQUIRE(made.ok());
    segment = std::move(*made);
    auto& writer = segment->writer();
    ShardSpec alpha;
    alpha.name = "alpha";
    REQUIRE(writer.publish_topology({alpha}).ok());
    TableNeeds needs;
    needs.entries = kTenants;
    needs.record_words = kTenants * IdShape<StdAtomics>::tail_words(kIdBytes);
    REQUIRE(writer.begin_load(needs, 1, 1, false).ok());
    RouteFields route;
    route.state = State::active;
    route.epoch = 1;
    for (std::uint64_t i = 0; i < kTenants; ++i)
      REQUIRE(writer.load(id_of(i), route) == Applied::changed);
    writer.switch_generation();
    REQUIRE(segment->publish_first().ok());
  }
  std::string path() const { return folder.file("seg"); }

  TempFolder folder{"/dev/shm"};
  std::unique_ptr<OwnedSegment> segment;
};

std::uint64_t own_page_table_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != "VmPTE:") continue;
    std::uint64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1'024;
  }
  return 0;
}

}  // namespace

TEST_CASE("what is computed is what a real segment reserves: loaded, rebuilt and grown") {
  const nlohmann::json size = computed(kTenants, kIdBytes);
  LoadedSegment loaded;
  auto& writer = loaded.segment->writer();
  CHECK(allocated(loaded.path()) == size.at("loaded_bytes"));
  CHECK(writer.memory().plan().span_bytes == size.at("address_space_bytes"));
  CHECK(writer.table().geometry().bytes() == size.at("table_bytes"));

  REQUIRE(writer.begin_copy({}, 2).ok());
  CHECK(allocated(loaded.path()) == size.at("both_halves_bytes"));
  writer.discard_generation();

  RouteFields route;
  route.state = State::active;
  route.epoch = 2;
  for (std::uint64_t i = kTenants; !writer.rebuild_due(); ++i)
    REQUIRE(writer.put(id_of(i), route) == Applied::changed);
  REQUIRE(writer.begin_copy({}, 3).ok());
  // The records that grow with the entries may end a step earlier or later.
  const auto peak = static_cast<double>(allocated(loaded.path()));
  CHECK(peak == doctest::Approx(size.at("growth_peak_bytes").get<double>()).epsilon(0.05));
}

TEST_CASE("what is computed for page tables is what a worker that touches the table pays") {
  const nlohmann::json size = computed(kTenants, kIdBytes);
  LoadedSegment loaded;
  const auto& plan = loaded.segment->writer().memory().plan();
  const std::string complaint = in_child([&]() -> std::string {
    const int fd = ::open(loaded.path().c_str(), O_RDONLY | O_CLOEXEC);
    const std::uint64_t before = own_page_table_bytes();
    const auto mapping = ReadMapping::map(fd, plan.span_bytes, loaded.path());
    if (!mapping.ok()) return mapping.status().message();
    unsigned sum = 0;
    const std::uint64_t touched = size.at("loaded_bytes");
    for (std::uint64_t at = 0; at < touched; at += 4'096)
      sum += static_cast<unsigned>(*(static_cast<const volatile std::byte*>(mapping->data()) + at));
    const std::uint64_t paid = own_page_table_bytes() - before;
    const std::uint64_t said = size.at("page_table_bytes");
    if (sum != 0 && paid <= said + 4 * 4'096 && said <= paid + 4 * 4'096) return {};
    return "paid " + std::to_string(paid) + ", computed " + std::to_string(said);
  });
  CHECK(complaint == "");
  CHECK(size.at("page_tables_of_all_bytes") ==
        3 * size.at("page_table_bytes").get<std::uint64_t>());
}

TEST_CASE("ids that fit into a slot cost the same at any length, longer ones more") {
  CHECK(computed(1'000'000, 1).at("table_bytes") == computed(1'000'000, 48).at("table_bytes"));
  CHECK(computed(1'000'000, 49).at("table_bytes") > computed(1'000'000, 48).at("table_bytes"));
}

TEST_CASE("a table beyond what its segment holds is refused with what would help") {
  const Ran ran =
      run_program(FINGERPOST_PROGRAM, {"size", "--tenants", "16000000", "--id-bytes", "255"});
  CHECK(ran.status == 3);
  CHECK(ran.err.find("give a larger --capacity") != std::string::npos);
  CHECK(run_program(FINGERPOST_PROGRAM, {"size"}).status == 2);
}

TEST_CASE("for people it is a line for each number") {
  const Ran ran = run_program(FINGERPOST_PROGRAM, {"size", "--tenants", "1000000"});
  CHECK(ran.status == 0);
  CHECK(ran.out.find("  reserved once it is loaded\n") != std::string::npos);
}
