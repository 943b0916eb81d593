// What an export says, and that a directory comes out of it as it was.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/moving_directory.h"
#include "tests/run_program.h"
#include "tools/directory_export.h"
#include "tools/directory_import.h"
#include "tools/directory_moves.h"
#include "tools/directory_pins.h"
#include "tools/directory_splits.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

const Mover kMia{"mia@h1", {}};

std::string exported(Directory& directory, ExportFormat format) {
  std::string text;
  const Status status =
      export_directory(directory, format, [&](std::string_view row) { text += row; });
  REQUIRE_MESSAGE(status.ok(), status.message());
  return text;
}

ImportReport import_text(Directory& directory, const std::string& text, bool dry_run = false) {
  std::istringstream input(text);
  const auto read = [&](char* bytes, std::size_t size) -> Result<std::size_t> {
    input.read(bytes, static_cast<std::streamsize>(size));
    return static_cast<std::size_t>(input.gcount());
  };
  const auto report = import_directory(directory, read, {dry_run, {}});
  REQUIRE_MESSAGE(report.ok(), report.status().message());
  return *report;
}

std::string faults_of(const ImportReport& report) {
  std::string text;
  for (const ImportFault& fault : report.faults) {
    text += fmt::format("{}: {}\n", fault.line, fault.message);
  }
  return text;
}

// All that an export carries over, from the tables.
std::string contents(Directory& directory) {
  std::string text;
  for (const char* table :
       {"SELECT entry_id || ' ' || shard_id || ' ' || state || ' ' || coalesce(target_shard, '-') "
        "FROM shard_directory ORDER BY 1",
        "SELECT entry_id || ' ' || parts FROM directory_split ORDER BY 1",
        "SELECT entry_id || ' ' || coalesce(region, '-') || ' ' || coalesce(reason, '-') || ' ' || "
        "who || ' ' || at FROM directory_pin ORDER BY 1",
        "SELECT shard_id || primary_address || replicas || region || weight || attributes FROM "
        "shard_topology ORDER BY 1",
        "SELECT shard_id || ' ' || tenants FROM shard_load ORDER BY 1"}) {
    SqliteStatement rows = directory.db().prepare(table);
    while (rows.step()) text += std::string(rows.text(0)) + "\n";
  }
  return text;
}

void move_entry(Directory& directory, const std::string& entry, const std::string& to) {
  REQUIRE(mark_move(directory, entry, to, 15min, kMia).ok());
  REQUIRE(freeze_move(directory, entry, kMia).ok());
  REQUIRE(flip_move(directory, entry, kMia).ok());
}

// Something of everything.
void fill(Directory& directory) {
  ShardEdit edit;
  edit.primary = "db1:5432";
  edit.replicas = std::vector<std::string>{"db2:5432", "db3:5432"};
  edit.region = "eu";
  edit.attributes = {{"tier", "g\"o,ld"}};
  edit.weight = 7;
  REQUIRE(set_shard(directory, "s1", edit).ok());
  for (const char* id : {"plain", "größe, \"quoted\"", " spaces ", "gone", "moving", "frozen"}) {
    REQUIRE(create_tenant(directory, id, "s1").ok());
  }
  REQUIRE(delete_tenant(directory, "gone").ok());
  REQUIRE(mark_move(directory, "moving", "s2", 15min, kMia).ok());
  REQUIRE(mark_move(directory, "frozen", "s2", 15min, kMia).ok());
  REQUIRE(freeze_move(directory, "frozen", kMia).ok());
  REQUIRE(create_tenant(directory, "split", "s1").ok());
  REQUIRE(split_tenant(directory, "split", 4).ok());
  move_entry(directory, "part:0:split", "s2");
  move_entry(directory, "part:2:split", "s2");
  REQUIRE(mark_move(directory, "part:3:split", "s2", 15min, kMia).ok());
  REQUIRE(pin_tenant(directory, "plain", "eu", "by, \"law\"").ok());
  REQUIRE(pin_tenant(directory, "gone", "", "").ok());
}

}  // namespace

TEST_CASE("an export imported into an empty directory gives the same, in both formats") {
  for (const ExportFormat format : {ExportFormat::csv, ExportFormat::json_lines}) {
    CAPTURE(static_cast<int>(format));
    MovingDirectory made;
    Directory& from = made.with_buckets(8);
    fill(from);
    const std::string text = exported(from, format);
    TempFolder folder;
    REQUIRE(init_directory(folder.file("copy.db"), {Fallback::buckets, 8, {}, {}}).ok());
    const auto copy = Directory::open(folder.file("copy.db"));
    REQUIRE(copy.ok());
    CHECK(faults_of(import_text(**copy, text, true)).empty());
    CHECK(contents(**copy).empty());
    const ImportReport report = import_text(**copy, text);
    CHECK(faults_of(report).empty());
    CHECK(report.shards == 2);
    CHECK(report.splits == 1);
    CHECK(report.pins == 2);
    CHECK(contents(**copy) == contents(from));
    CHECK(exported(**copy, format).size() > 0);
    CHECK((*copy)->db().integer("SELECT count(*) FROM directory_history") ==
          static_cast<std::int64_t>((*copy)->version()));
    // Again, it says what is there.
    const std::uint64_t version = (*copy)->version();
    const ImportReport again = import_text(**copy, text);
    CHECK(faults_of(again).empty());
    CHECK(again.inserted == 0);
    CHECK((*copy)->version() == version);
  }
}

TEST_CASE("the hash list's shards, which init made without addresses, are filled in") {
  MovingDirectory made;
  Directory& from = made.with_hash();
  ShardEdit edit;
  edit.primary = "db1:5432";
  REQUIRE(set_shard(from, "s1", edit).ok());
  MovingDirectory copied;
  Directory& copy = copied.with_hash();
  CHECK(import_text(copy, exported(from, ExportFormat::csv)).shards == 1);
  CHECK(contents(copy) == contents(from));
  // But not one that has an address of its own.
  edit.primary = "elsewhere:5432";
  REQUIRE(set_shard(copy, "s1", edit).ok());
  CHECK(faults_of(import_text(copy, exported(from, ExportFormat::csv)))
            .find("shard 's1' exists with other values") != std::string::npos);
}

TEST_CASE("an export goes into a directory of the same layout only") {
  MovingDirectory made;
  Directory& from = made.with_buckets(8);
  MovingDirectory other;
  CHECK(faults_of(import_text(other.with_buckets(16), exported(from, ExportFormat::json_lines)))
            .find("1: the entries are of a directory with {\"buckets\":8") != std::string::npos);
}

TEST_CASE("every record that is wrong is named with its line, and nothing is applied") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  made.sql("UPDATE shard_topology SET region = CASE shard_id WHEN 's1' THEN 'eu' ELSE 'us' END");
  REQUIRE(create_tenant(directory, "there", "s1").ok());
  REQUIRE(pin_tenant(directory, "later", "us", "").ok());
  const std::uint64_t before = directory.version();
  // The line of a row that a pin forbids is that of the entry.
  const std::string lines[] = {
      R"({"entry_id":"ok","shard_id":"s1"})",
      R"({"entry_id":"a","shard_id":"s1","stat":"ACTIVE"})",
      R"({"entry_id":"a","shard_id":7})",
      "{not json",
      R"({"kind":"tenant","entry_id":"a"})",
      R"({"kind":"split","entry_id":"ok","parts":1})",
      R"({"kind":"split","entry_id":"nobody","parts":2})",
      R"({"kind":"split","entry_id":"there","parts":2})",
      R"({"kind":"split","entry_id":"there","parts":4})",
      R"({"entry_id":"part:0:ok","shard_id":"s1"})",
      R"({"kind":"pin","entry_id":"ok","region":"us"})",
      R"({"kind":"pin","entry_id":"there","region":"us"})",
      R"({"kind":"pin","entry_id":"later"})",
      R"({"entry_id":"later","shard_id":"s1"})",
      R"({"kind":"shard","shard_id":"s1","primary":"x"})",
      R"({"kind":"shard","shard_id":"s3","primary":"u:p@h"})",
      R"({"kind":"shard","shard_id":"s3","weight":-1})",
      R"({"kind":"shard","shard_id":"s3","wait":1})",
      R"({"entry_id":"b","shard_id":"s9"})",
      R"({"entry_id":"c","shard_id":"s1","state":"ACTIVE","target_shard":null,"epoch":7})"};
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const ImportReport report = import_text(directory, text);
  const std::string faults = faults_of(report);
  std::vector<std::uint64_t> wrong;
  for (const ImportFault& fault : report.faults) wrong.push_back(fault.line);
  CAPTURE(faults);
  CHECK(wrong == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 12, 13, 14, 15, 16,
                                            17, 18, 19});
  CHECK(faults.find("2: an entry has no 'stat'") != std::string::npos);
  CHECK(faults.find("4: is no JSON object") != std::string::npos);
  CHECK(faults.find("16: shard 's3': the primary's address carries user:password@") !=
        std::string::npos);
  CHECK(directory.version() == before);
  CHECK(made.entry("ok") == "nothing");
}

TEST_CASE("JSON Lines bear a byte order mark, CRLF, blank lines and no last line end") {
  MovingDirectory made;
  Directory& directory = made.without_fallback();
  const ImportReport report = import_text(
      directory,
      "\xEF\xBB\xBF{\"entry_id\":\"a\",\"shard_id\":\"s1\"}\r\n\r\n  {\"entry_id\":\"b\","
      "\"shard_id\":\"s2\"}");
  CHECK(faults_of(report).empty());
  CHECK(report.inserted == 2);
  const ImportReport wide =
      import_text(directory, "{\"entry_id\":\"" + std::string(3'000'000, 'x') + "\"}\n");
  CHECK(faults_of(wide) == "1: is longer than 1048576 bytes\n");
}

TEST_CASE("the command exports what the command imports") {
  MovingDirectory made;
  Directory& from = made.with_buckets(4);
  fill(from);
  for (const bool json : {false, true}) {
    TempFolder folder;
    REQUIRE(init_directory(folder.file("copy.db"), {Fallback::buckets, 4, {}, {}}).ok());
    std::vector<std::string> arguments = {"export", "--directory", made.path};
    if (json) arguments.emplace_back("--json");
    const Ran out = run_program(FINGERPOST_PROGRAM, arguments);
    CHECK(out.status == 0);
    const Ran in =
        run_program(FINGERPOST_PROGRAM,
                    {"import", "-", "--json", "--directory", folder.file("copy.db")}, out.out);
    CHECK_MESSAGE(in.status == 0, in.err);
    CHECK(nlohmann::json::parse(in.out)["pins"] == 2);
    CHECK(run_program(FINGERPOST_PROGRAM,
                      {"tenant", "parts", "split", "--directory", folder.file("copy.db")})
              .status == 0);
  }
}

}  // namespace fingerpost
