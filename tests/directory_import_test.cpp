#include "tools/directory_import.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "shm/hash.h"
#include "tests/sample_directory.h"
#include "tests/temp_folder.h"
#include "tools/directory_tenants.h"

namespace fingerpost {
namespace {

CsvReader::Read reading(std::string text) {
  return [text = std::move(text), at = std::size_t{0}](
             char* bytes, std::size_t size) mutable -> Result<std::size_t> {
    const std::size_t n = std::min(size, text.size() - at);
    std::memcpy(bytes, text.data() + at, n);
    at += n;
    return n;
  };
}

struct Fixture {
  TempFolder folder;
  std::string path = folder.file("directory.db");
  std::unique_ptr<Directory> directory;

  Fixture() {
    make_sample_directory(path);
    auto opened = Directory::open(path);
    REQUIRE(opened.ok());
    directory = *std::move(opened);
  }

  SqliteDb& db() { return directory->db(); }

  ImportReport import(const std::string& text, bool dry_run = false) {
    Result<ImportReport> report = import_directory(*directory, reading(text), {dry_run, {}});
    REQUIRE_MESSAGE(report.ok(), report.status().message());
    return *std::move(report);
  }
  std::string refusal(const std::string& text) {
    const Result<ImportReport> report = import_directory(*directory, reading(text), {});
    REQUIRE_FALSE(report.ok());
    CHECK(report.status().code() == Code::refused);
    return report.status().message();
  }
  // The faults as lines of text; nothing was applied.
  std::string faults(const std::string& text) {
    const std::uint64_t before = directory->version();
    const std::int64_t rows = db().integer("SELECT count(*) FROM shard_directory");
    const ImportReport report = import(text);
    CHECK(report.fault_count == report.faults.size());
    CHECK(directory->version() == before);
    CHECK(db().integer("SELECT count(*) FROM shard_directory") == rows);
    std::string all;
    for (const ImportFault& fault : report.faults)
      all += fmt::format("{}: {}\n", fault.line, fault.message);
    return all;
  }
  std::string row(const std::string& id) {
    SqliteStatement select = db().prepare(
        "SELECT shard_id || ' ' || state || coalesce(' ' || target_shard, '') FROM shard_directory "
        "WHERE entry_id = ?");
    return select.bind(id).step() ? std::string(select.text(0)) : std::string();
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "rows are inserted by a verb, and a rerun ends the same") {
  const std::string text =
      "entry_id,shard_id,state,target_shard\na,alpha,,\nb,beta,FROZEN,\nc,alpha,MIGRATING,beta\nd,"
      "beta,DELETED,\n"
      "bucket:3,beta,ACTIVE,\n\"e,\"\"f\",alpha,,\na,alpha,,\n";
  const ImportReport first = import(text);
  CHECK(first.rows == 7);
  CHECK(first.inserted == 6);
  CHECK(first.repeated == 1);
  CHECK(first.version == directory->version());
  CHECK(row("a") == "alpha ACTIVE");
  CHECK(row("c") == "alpha MIGRATING beta");
  CHECK(row("e,\"f") == "alpha ACTIVE");
  CHECK(db().integer(
            "SELECT count(*) FROM directory_history WHERE verb = 'import' AND who LIKE '%@%'") ==
        6);
  CHECK(db().integer("SELECT count(*) FROM directory_session") == 0);
  const ImportReport second = import(text);
  CHECK(second.inserted == 0);
  CHECK(second.unchanged == 6);
  CHECK(second.version == first.version);
}

TEST_CASE_FIXTURE(Fixture, "byte order mark and every kind of line end give the same ids") {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    const std::string text = fmt::format(
        "\xEF\xBB\xBF"
        "entry_id,shard_id{0}a,alpha{0}b,beta{0}",
        end);
    const ImportReport report = import(text);
    CHECK(report.inserted + report.unchanged == 2);
    CHECK(db().integer("SELECT count(*) FROM shard_directory") == 2);
  }
  CHECK(refusal("\xFF\xFE"
                "e")
            .find("UTF-16") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "a dry run says what would be and does nothing") {
  const std::uint64_t before = directory->version();
  const ImportReport report = import("entry_id,shard_id\na,alpha\n", true);
  CHECK(report.inserted == 1);
  CHECK(report.version == before);
  CHECK(directory->version() == before);
  CHECK(row("a").empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "every fault is listed with its line, in order, and nothing is applied") {
  put_tenant(db(), "old", "alpha");
  CHECK(faults("shard_id,entry_id,state,target_shard\n"
               "alpha,good,,\n"
               "beta,old,,\n"
               "nowhere,x,,\n"
               "alpha,\"a\nb\",,\n"
               "alpha,,,\n"
               "alpha,bucket:16,,\n"
               "alpha,bucket:01,,\n"
               "alpha,part:1:x,,\n"
               "alpha,s,active,\n"
               "alpha,t,,beta\n"
               "alpha,u,MIGRATING,\n"
               "alpha,v,MIGRATING,nowhere\n"
               "alpha,w\n"
               "alpha,bucket:2,DELETED,\n"
               "alpha,\xFF,,\n") ==
        "3: entry_id 'old' exists with shard 'alpha', state ACTIVE; an import does not change it "
        "to shard 'beta'\n"
        "4: shard_id 'nowhere': there is no such shard\n"
        "5: entry_id 'a\\x0ab' holds a control character\n"
        "7: entry_id '' is empty\n"
        "8: entry_id 'bucket:16': the directory has 16 buckets\n"
        "9: entry_id 'bucket:01' is not 'bucket:N' with N in plain decimal\n"
        "10: entry_id 'part:1:x' is a part, and its tenant is not split\n"
        "11: state 'active' is none of ACTIVE, MIGRATING, FROZEN, DELETED\n"
        "12: target_shard 'beta' goes with state MIGRATING or FROZEN only\n"
        "13: state MIGRATING needs a target_shard\n"
        "14: target_shard 'nowhere': there is no such shard\n"
        "15: 2 fields; the header names 4 columns\n"
        "16: entry_id 'bucket:2': a bucket cannot be DELETED\n"
        "17: entry_id '\\xff' is not valid UTF-8\n");
}

TEST_CASE_FIXTURE(Fixture, "an id twice with different shards is refused with both lines") {
  CHECK(faults("entry_id,shard_id\nx,alpha\ny,alpha\nx,beta\n") ==
        "4: entry_id 'x' is on line 2 already, with shard 'alpha' there and shard 'beta' here\n");
}

TEST_CASE_FIXTURE(Fixture,
                  "an unmatched quote near the top of a long file is refused with its line") {
  std::string text = "entry_id,shard_id\na,alpha\n\"b,alpha\n";
  for (int i = 0; i < 20'000; ++i) text += fmt::format("t{},alpha\n", i);
  CHECK(faults(text) ==
        "3: the field that begins here is longer than 8192 bytes: is a quote unmatched?\n");
}

TEST_CASE_FIXTURE(Fixture, "of very many faults the first are kept and all are counted") {
  std::string text = "entry_id,shard_id\n";
  for (int i = 0; i < 1'000; ++i) text += fmt::format("t{},nowhere\n,alpha\n", i);
  const ImportReport report = import(text);
  CHECK(report.fault_count == 2'000);
  REQUIRE(report.faults.size() == kImportFaultsKept);
  CHECK(report.faults.front().line == 2);
  CHECK(report.faults.back().line == 1 + kImportFaultsKept);
}

TEST_CASE_FIXTURE(
    Fixture,
    "a row that leaves the state open accepts a move in progress; one that names it does not") {
  put_tenant(db(), "a", "alpha");
  db().exec("UPDATE shard_directory SET state = 'MIGRATING', target_shard = 'beta'");
  CHECK(import("entry_id,shard_id\na,alpha\n").unchanged == 1);
  CHECK(faults("entry_id,shard_id,state\na,alpha,ACTIVE\n")
            .find("exists with shard 'alpha', state MIGRATING") != std::string::npos);
  CHECK(row("a") == "alpha MIGRATING beta");
}

TEST_CASE_FIXTURE(
    Fixture, "an import neither revives what is deleted nor covers a bucket that is being moved") {
  put_tenant(db(), "a", "alpha");
  db().exec("DELETE FROM shard_directory");
  CHECK(faults("entry_id,shard_id\na,alpha\n").find("state DELETED") != std::string::npos);

  const std::string bucket = directory->bucket_of("b");
  CHECK(bucket == fmt::format("bucket:{}", placement_hash("b") % 16));
  put_tenant(db(), bucket, "alpha");
  db().exec(
      "UPDATE shard_directory SET state = 'FROZEN', target_shard = 'beta' WHERE entry_id = '" +
      bucket + "'");
  CHECK(faults("entry_id,shard_id\nb,alpha\n") ==
        fmt::format(
            "2: {} answers for 'b', and is FROZEN on shard 'alpha' (epoch {}); no verb of ours "
            "recorded its move: finish or abort it first\n",
            bucket, directory->version()));
}

TEST_CASE_FIXTURE(Fixture, "the header is judged before any row") {
  CHECK(refusal("") == "the input is empty: its first record must name the columns");
  CHECK(refusal("entry_id\na\n").find("must name a column shard_id") != std::string::npos);
  CHECK(refusal("a,alpha\n").find("unknown column 'a'") != std::string::npos);
  CHECK(refusal("entry_id,shard_id,sate\n").find("unknown column 'sate'") != std::string::npos);
  CHECK(refusal("entry_id,shard_id,entry_id\n").find("'entry_id' is there twice") !=
        std::string::npos);
  CHECK(import("entry_id,shard_id,epoch,updated_at\na,alpha,17,never\n").inserted == 1);
  CHECK(import("entry_id,shard_id\n").rows == 0);
}

TEST_CASE_FIXTURE(
    Fixture,
    "an import that is killed while it writes leaves nothing, and a rerun ends as one run") {
  std::string text = "entry_id,shard_id\n";
  for (int i = 0; i < 30'000; ++i) text += fmt::format("tenant-{},alpha\n", i);
  directory.reset();  // SQLite's connections do not survive a fork
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto opened = Directory::open(path);
    const auto die = [](std::uint64_t done, std::uint64_t) {
      if (done > 0) kill(getpid(), SIGKILL);
    };
    if (opened.ok()) (void)import_directory(**opened, reading(text), {false, die});
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  directory = *Directory::open(path);
  CHECK(db().integer("SELECT count(*) FROM shard_directory") == 0);
  const std::uint64_t before = directory->version();
  CHECK(import(text).inserted == 30'000);
  CHECK(directory->version() == before + 30'000);
  CHECK(db().integer(
            "SELECT count(*) FROM shard_directory WHERE shard_id = 'alpha' AND state = 'ACTIVE'") ==
        30'000);
}

}  // namespace fingerpost
