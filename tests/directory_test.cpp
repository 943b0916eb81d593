// The verbs as functions over an open directory.
#include "tools/directory.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "shm/hash.h"
#include "tests/child_process.h"
#include "tests/other_user.h"
#include "tests/temp_folder.h"
#include "tools/directory_buckets.h"
#include "tools/directory_init.h"
#include "tools/directory_shards.h"
#include "tools/directory_tenants.h"

namespace fingerpost {
namespace {

ShardSpec shard(const std::string& name, std::uint32_t weight = 100) {
  ShardSpec spec;
  spec.name = name;
  spec.weight = weight;
  return spec;
}

struct Fixture {
  TempFolder folder;
  std::string path = folder.file("directory.db");
  std::unique_ptr<Directory> directory;

  Directory& make(const InitOptions& options) {
    const Result<InitResult> made = init_directory("sqlite:" + path, options);
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    auto opened = Directory::open(path);
    REQUIRE(opened.ok());
    directory = *std::move(opened);
    return *directory;
  }
  Directory& with_buckets(std::uint32_t buckets) {
    return make({Fallback::buckets, buckets, {}, {}});
  }
  std::string last_verb() {
    SqliteStatement select = directory->db().prepare(
        "SELECT coalesce(verb, '') FROM directory_history ORDER BY version DESC LIMIT 1");
    select.step();
    return std::string(select.text(0));
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "init makes a directory with an identity, once, in WAL mode") {
  Directory& made = with_buckets(64);
  CHECK(made.layout().fallback == Fallback::buckets);
  CHECK(made.layout().buckets == 64);
  CHECK(made.version() == 1);
  CHECK(last_verb() == "init");
  SqliteStatement mode = made.db().prepare("PRAGMA journal_mode");
  mode.step();
  CHECK(mode.text(0) == "wal");
  const std::string id = to_string(made.layout().directory_id);
  CHECK(id[14] == '4');  // a random UUID says so
  CHECK(init_directory(path, {}).status().code() == Code::conflict);
  TempFolder other;
  const Result<InitResult> second = init_directory(other.file("d.db"), {});
  REQUIRE(second.ok());
  CHECK(to_string(second->directory_id) != id);
}

TEST_CASE_FIXTURE(Fixture, "init leaves foreign files alone") {
  SqliteDb(folder.file("other.db"), SqliteDb::Mode::create).exec("CREATE TABLE t (x)");
  CHECK(init_directory(folder.file("other.db"), {}).status().message().find("of something else") !=
        std::string::npos);
  std::ofstream(folder.file("text")) << "a text of more than a few bytes, and no database at all\n";
  CHECK_THROWS_AS((void)init_directory(folder.file("text"), {}), SqliteError);
  CHECK(Directory::open(folder.file("other.db")).status().code() == Code::refused);
  CHECK_THROWS_AS((void)Directory::open(folder.file("absent.db")), SqliteError);
  CHECK(Directory::open("postgres://host/db").status().message().find("'postgres' is not known") !=
        std::string::npos);
}

TEST_CASE("options of init that contradict each other are refused before anything is made") {
  TempFolder folder;
  for (const InitOptions& options :
       {InitOptions{Fallback::buckets, 0, {}, {}},
        InitOptions{Fallback::buckets, kBucketsMax + 1, {}, {}},
        InitOptions{Fallback::hash, 0, {}, {}}, InitOptions{Fallback::none, 8, {}, {}},
        InitOptions{Fallback::none, 0, {"a"}, {}}, InitOptions{Fallback::hash, 0, {"a", "a"}, {}},
        InitOptions{Fallback::hash, 0, {""}, {}}}) {
    CHECK(init_directory(folder.file("d.db"), options).status().code() == Code::refused);
  }
  struct stat found {};
  CHECK(::stat(folder.file("d.db").c_str(), &found) != 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "shards of the hash list are in the topology from the start, and stay there") {
  Directory& made = make({Fallback::hash, 0, {"b", "a"}, {}});
  CHECK(made.layout().hash_shards == std::vector<std::string>{"b", "a"});
  const auto shards = list_shards(made);
  REQUIRE(shards.ok());
  CHECK(shards->size() == 2);
  CHECK(remove_shard(made, "a").status().message().find("hash list") != std::string::npos);
  CHECK(set_shard(made, "a",
                  {.primary = "db:1", .replicas = {}, .region = {}, .weight = {}, .attributes = {}})
            .ok());
}

TEST_CASE_FIXTURE(Fixture, "init names the folder that is missing, no folder, or not writable") {
  const auto why = [](const std::string& at) {
    const auto made = init_directory(at, {});
    return made.ok() ? std::string("made") : made.status().message();
  };
  const std::string missing = folder.file("none") + "/d.db";
  CHECK(why(missing) == missing + ": there is no folder " + folder.file("none"));
  std::ofstream(folder.file("text")) << "text";
  const std::string beside = folder.file("text") + "/d.db";
  CHECK(why(beside) == beside + ": " + folder.file("text") + " is no folder");
  if (!can_switch_users()) return;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  CHECK(in_child([&] {
          become(kStranger);
          return why(folder.file("d.db"));
        }) == folder.file("d.db") + ": the folder " + folder.path() +
                  " (owned by root (uid 0), mode 0755) is not writable for uid 64123");
  CHECK_FALSE(std::filesystem::exists(folder.file("d.db")));
}

TEST_CASE_FIXTURE(
    Fixture,
    "init for a group makes a folder that its members can use, and changes none that exists") {
  const group* mail = getgrnam("mail");
  REQUIRE(mail != nullptr);
  const gid_t gid = mail->gr_gid;
  const std::string shared = folder.file("shared");
  REQUIRE(init_directory(shared + "/d.db", {Fallback::none, 0, {}, "mail"}).ok());
  struct stat found {};
  REQUIRE(::stat(shared.c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 02770);
  CHECK(found.st_gid == gid);
  REQUIRE(::stat((shared + "/d.db").c_str(), &found) == 0);
  CHECK((found.st_mode & 07777) == 0660);
  CHECK(found.st_gid == gid);
  const Result<InitResult> refused =
      init_directory(folder.file("d.db"), {Fallback::none, 0, {}, "mail"});
  CHECK(refused.status().message().find("install -d -m 2770 -g mail") != std::string::npos);
  CHECK(
      init_directory(shared + "/e.db", {Fallback::none, 0, {}, "no-such-group"}).status().code() ==
      Code::refused);
}

TEST_CASE_FIXTURE(
    Fixture, "a shard is added once, edited field by field, and removed when nothing names it") {
  Directory& made = make({});
  ShardSpec spec = shard("s1");
  spec.primary = "db1:5432";
  spec.replicas = {"db2:5432", "db3:5432"};
  spec.attributes = {{"disk", "ssd"}, {"tier", "gold"}};
  const auto added = add_shard(made, spec);
  REQUIRE(added.ok());
  CHECK(last_verb() == "shard add");
  CHECK(*add_shard(made, spec) == *added);
  CHECK(add_shard(made, shard("s1")).status().code() == Code::conflict);

  ShardEdit edit;
  edit.primary = "db2:5432";
  edit.attributes = {{"tier", ""}, {"rack", "7"}};
  const auto changed = set_shard(made, "s1", edit);
  REQUIRE(changed.ok());
  CHECK(*changed == *added + 1);
  CHECK(*set_shard(made, "s1", edit) == *changed);
  const auto rows = list_shards(made);
  REQUIRE(rows.ok());
  REQUIRE(rows->size() == 1);
  spec.primary = "db2:5432";
  spec.attributes = {{"disk", "ssd"}, {"rack", "7"}};
  CHECK(rows->front().spec == spec);
  CHECK(rows->front().epoch == *changed);

  REQUIRE(create_tenant(made, "acme", "s1").ok());
  CHECK(list_shards(made)->front().tenants == 1);
  CHECK(remove_shard(made, "s1").status().message().find("1 entries") != std::string::npos);
  REQUIRE(add_shard(made, shard("s2")).ok());
  CHECK(remove_shard(made, "s2").ok());
  CHECK(remove_shard(made, "s2").status().code() == Code::absent);
  CHECK(set_shard(made, "s2", edit).status().code() == Code::absent);
}

TEST_CASE("what is no shard is refused, and a refused address is not repeated") {
  CHECK(why_not_shard_name("") == "is empty");
  CHECK(why_not_shard_name(std::string(33, 'x')) == "is longer than 32 bytes");
  CHECK(why_not_shard_name("a\tb") == "holds a control character");
  CHECK(why_not_shard_name("\xFF") == "is not valid UTF-8");
  for (const char* good :
       {"", "db:5432", "[::1]:5432", "postgres://reader@db:5432/x", "user@db", "/run/db.sock"}) {
    CHECK_FALSE(why_not_address(good));
  }
  for (const char* bad : {"u:secret@db", "postgres://u:secret@db", "u:sec/ret@db", "://:secret@"}) {
    CHECK(why_not_address(bad));
    ShardEdit edit;
    edit.replicas = {"db:1", bad};
    CHECK(edited(shard("s"), edit).status().message().find("secret") == std::string::npos);
  }
  ShardEdit many;
  many.replicas = std::vector<std::string>(65, "db:1");
  CHECK(edited(shard("s"), many).status().code() == Code::refused);
}

TEST_CASE("buckets are spread by weight, deterministically, over what shards have already") {
  const std::vector<ShardShare> shares = {
      {"a", 100, 0}, {"b", 200, 0}, {"c", 0, 0}, {"d", 100, 50}};
  const std::vector<std::size_t> chosen = spread_buckets(shares, 350);
  std::map<std::size_t, int> counts;
  for (const std::size_t share : chosen) ++counts[share];
  CHECK(counts == std::map<std::size_t, int>{{0, 100}, {1, 200}, {3, 50}});
  CHECK(spread_buckets(shares, 350) == chosen);
  CHECK(spread_buckets({{"c", 0, 0}}, 3).empty());
}

TEST_CASE_FIXTURE(Fixture, "assigning fills what is unassigned and moves nothing") {
  Directory& made = with_buckets(32);
  CHECK(assign_buckets(made, {}, {}).status().code() == Code::refused);
  REQUIRE(add_shard(made, shard("a")).ok());
  REQUIRE(add_shard(made, shard("b", 300)).ok());
  CHECK(assign_buckets(made, {"c"}, {}).status().code() == Code::refused);
  CHECK(assign_buckets(made, {}, std::pair(30U, 32U)).status().code() == Code::refused);
  CHECK(assign_buckets(made, {"a"}, std::pair(0U, 9U))->assigned == 10);
  const auto before = list_buckets(made);
  CHECK(before->at(10).shard.empty());
  const auto result = assign_buckets(made, {}, {});
  REQUIRE(result.ok());
  CHECK(result->assigned == 22);
  const auto after = list_buckets(made);
  for (std::uint32_t i = 0; i < 10; ++i) CHECK(after->at(i).epoch == before->at(i).epoch);
  CHECK(std::count_if(after->begin(), after->end(),
                      [](const BucketRow& row) { return row.shard == "b"; }) == 22);
  const auto again = assign_buckets(made, {}, {});
  CHECK(again->assigned == 0);
  CHECK(again->version == result->version);
}

TEST_CASE_FIXTURE(Fixture, "create puts a tenant once, never moves it, and revives it anywhere") {
  Directory& made = make({});
  REQUIRE(add_shard(made, shard("a")).ok());
  REQUIRE(add_shard(made, shard("b")).ok());
  const auto created = create_tenant(made, "acme", "a");
  REQUIRE(created.ok());
  CHECK(last_verb() == "tenant create");
  CHECK((*get_tenant(made, "acme"))->epoch == *created);
  CHECK(*create_tenant(made, "acme", "a") == *created);
  const Status elsewhere = create_tenant(made, "acme", "b").status();
  CHECK(elsewhere.code() == Code::conflict);
  CHECK(elsewhere.message().find("exists on shard 'a'") != std::string::npos);
  CHECK(create_tenant(made, "x", "c").status().code() == Code::refused);
  CHECK(create_tenant(made, "bucket:1", "a").status().code() == Code::refused);
  CHECK(create_tenant(made, "", "a").status().code() == Code::refused);

  CHECK(delete_tenant(made, "nobody").status().code() == Code::absent);
  const auto deleted = delete_tenant(made, "acme");
  REQUIRE(deleted.ok());
  CHECK(*delete_tenant(made, "acme") == *deleted);
  CHECK((*get_tenant(made, "acme"))->state == "DELETED");
  REQUIRE(create_tenant(made, "acme", "b").ok());
  CHECK((*get_tenant(made, "acme"))->shard == "b");
  CHECK_FALSE(get_tenant(made, "nobody")->has_value());
  CHECK(made.version() == *created + 2);
}

TEST_CASE_FIXTURE(Fixture, "an entry or a bucket that is being moved is left alone") {
  Directory& made = with_buckets(4);
  REQUIRE(add_shard(made, shard("a")).ok());
  REQUIRE(add_shard(made, shard("b")).ok());
  REQUIRE(assign_buckets(made, {"a"}, {}).ok());
  REQUIRE(create_tenant(made, "acme", "a").ok());
  for (const char* state : {"MIGRATING", "FROZEN"}) {
    made.db().exec(
        fmt::format("UPDATE shard_directory SET state = '{}', target_shard = 'b'", state));
    const std::uint64_t before = made.version();
    CHECK(create_tenant(made, "acme", "a").status().code() == Code::conflict);
    CHECK(delete_tenant(made, "acme").status().code() == Code::conflict);
    const Status covered = create_tenant(made, "new", "a").status();
    CHECK(covered.code() == Code::conflict);
    CHECK(covered.message().find(made.bucket_of("new") + " answers for 'new'") !=
          std::string::npos);
    CHECK(delete_tenant(made, "other").status().code() == Code::conflict);
    CHECK(made.version() == before);
  }
}

TEST_CASE_FIXTURE(Fixture,
                  "deleting a tenant that only a bucket answers for says so where it resolved to") {
  Directory& made = with_buckets(4);
  REQUIRE(add_shard(made, shard("a")).ok());
  CHECK(made.bucket_of("acme") == fmt::format("bucket:{}", placement_hash("acme") % 4));
  CHECK(delete_tenant(made, "acme").status().code() == Code::absent);
  REQUIRE(assign_buckets(made, {}, {}).ok());
  const auto deleted = delete_tenant(made, "acme");
  REQUIRE(deleted.ok());
  CHECK(*deleted == Deleted{made.bucket_of("acme"), "a", made.version()});
  CHECK((*get_tenant(made, "acme"))->state == "DELETED");
  CHECK((*get_tenant(made, "acme"))->shard == "a");
  // The second time there is an entry.
  CHECK(*delete_tenant(made, "acme") == Deleted{{}, {}, deleted->version});
}

TEST_CASE_FIXTURE(Fixture, "pages of a listing meet every tenant once, in the order of bytes") {
  Directory& made = with_buckets(4);
  REQUIRE(add_shard(made, shard("a")).ok());
  REQUIRE(assign_buckets(made, {}, {}).ok());
  const std::vector<std::string> ids = {"1-1",    "11",        "AB",   "a-b", "ab",
                                        "bucket", "bucketeer", "part", "é",   "東京"};
  for (const std::string& id : ids) REQUIRE(create_tenant(made, id, "a").ok());
  const auto listed = [&](const TenantPage& page) {
    std::vector<std::string> found;
    list_tenants(made, page, [&](const TenantRow& row) { found.push_back(row.id); });
    return found;
  };
  CHECK(listed({}) == ids);
  CHECK(listed({"a", "", 0}) == std::vector<std::string>{"a-b", "ab"});
  CHECK(listed({"bucket", "bucket", 0}) == std::vector<std::string>{"bucketeer"});
  CHECK(listed({"zz", "", 0}).empty());
  std::vector<std::string> paged;
  for (std::string after;;) {
    const std::vector<std::string> page = listed({"", after, 3});
    if (page.empty()) break;
    paged.insert(paged.end(), page.begin(), page.end());
    after = page.back();
  }
  CHECK(paged == ids);
}

TEST_CASE_FIXTURE(
    Fixture,
    "a verb that is refused leaves nothing behind, and plain SQL is not taken for a verb") {
  Directory& made = make({});
  REQUIRE(add_shard(made, shard("a")).ok());
  { const DirectoryChange abandoned(made, "tenant create"); }
  CHECK(made.db().integer("SELECT count(*) FROM directory_session") == 0);
  made.db().exec("INSERT INTO shard_directory (entry_id, shard_id) VALUES ('x', 'a')");
  CHECK(last_verb().empty());
}

TEST_CASE_FIXTURE(Fixture, "another writer's lock is a named error after a bounded wait") {
  make({});
  SqliteDb other(path, SqliteDb::Mode::read_write);
  const SqliteTransaction held(other, SqliteTransaction::Kind::write);
  SqliteDb waiting(path, SqliteDb::Mode::read_write, std::chrono::milliseconds(50));
  try {
    const SqliteTransaction transaction(waiting, SqliteTransaction::Kind::write);
    FAIL("two writers at once");
  } catch (const SqliteError& error) {
    CHECK(error.status().code() == Code::busy);
    CHECK(error.status().message() == path + ": locked by another writer (waited 50 ms)");
  }
}

}  // namespace fingerpost
