#include "tools/directory.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "shm/hash.h"
#include "shm/tenant_id.h"
#include "tools/schema.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

Result<DirectoryLayout> read_layout(SqliteDb& db) {
  const std::string not_ours = db.path() + ": not a Fingerpost directory: ";
  if (db.integer("SELECT count(*) FROM sqlite_schema WHERE name IN ('shard_directory', "
                 "'directory_layout', "
                 "'directory_version', 'directory_history', 'shard_topology')") != 5) {
    return Status(Code::refused, not_ours + "its tables are missing; `fingerpost init` makes one");
  }
  SqliteStatement select = db.prepare(
      "SELECT directory_id, buckets, fallback, hash_shards, schema_version, replay_floor, epoch "
      "FROM directory_layout");
  if (!select.step()) return Status(Code::refused, not_ours + "directory_layout has no row");
  DirectoryLayout layout;
  const auto id = parse_directory_id(select.text(0));
  if (!id) return Status(Code::refused, not_ours + "directory_id is " + in_quotes(select.text(0)));
  layout.directory_id = *id;
  layout.schema_version = static_cast<std::uint32_t>(select.integer(4));
  if (layout.schema_version != kSchemaVersion) {
    return Status(Code::refused, fmt::format("{}: schema version {}; this program knows version {}",
                                             db.path(), layout.schema_version, kSchemaVersion));
  }
  layout.buckets = static_cast<std::uint32_t>(select.integer(1));
  const std::string_view fallback = select.text(2);
  layout.fallback = fallback == "buckets" ? Fallback::buckets
                    : fallback == "hash"  ? Fallback::hash
                                          : Fallback::none;
  const auto hash_shards = from_json_list(select.text(3));
  if (!hash_shards)
    return Status(Code::refused, not_ours + "hash_shards is " + in_quotes(select.text(3)));
  layout.hash_shards = *hash_shards;
  layout.replay_floor = select.number(5);
  layout.epoch = select.number(6);
  return layout;
}

}  // namespace

Result<std::unique_ptr<Directory>> Directory::open(std::string_view url) {
  Result<std::string> path = sqlite_path_of_url(url);
  if (!path) return path.status();
  std::unique_ptr<Directory> directory(new Directory(*path));
  Result<DirectoryLayout> layout = read_layout(directory->db_);
  if (!layout) return layout.status();
  directory->layout_ = *std::move(layout);
  return directory;
}

std::uint64_t Directory::version() {
  return static_cast<std::uint64_t>(db_.integer("SELECT version FROM directory_version"));
}

std::string Directory::bucket_of(std::string_view tenant) const {
  if (layout_.fallback != Fallback::buckets) return {};
  return fmt::format("{}{}", kBucketPrefix, placement_hash(tenant) % layout_.buckets);
}

DirectoryChange::DirectoryChange(Directory& directory, std::string_view verb, std::string_view note,
                                 std::string_view who)
    : directory_(directory),
      transaction_(directory.db(), SqliteTransaction::Kind::write),
      version_before_(directory.version()) {
  SqliteStatement insert = directory_.db().prepare(
      "INSERT INTO directory_session (id, who, verb, note) VALUES (1, ?, ?, nullif(?, ''))");
  insert.bind(who.empty() ? this_user() : std::string(who), verb, note).run();
}

std::uint64_t DirectoryChange::commit() {
  directory_.db().exec("DELETE FROM directory_session");
  const std::uint64_t version = directory_.version();
  transaction_.commit();
  return version;
}

std::string this_user() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
  const uid_t uid = geteuid();
  const passwd* user = getpwuid(uid);
  return fmt::format("{}@{}", user != nullptr ? user->pw_name : std::to_string(uid), host.data());
}

std::string to_json_list(const std::vector<std::string>& list) {
  return nlohmann::json(list).dump();
}

std::optional<std::vector<std::string>> from_json_list(std::string_view json) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_array()) return std::nullopt;
  std::vector<std::string> list;
  for (const nlohmann::json& item : parsed) {
    if (!item.is_string()) return std::nullopt;
    list.push_back(item.get<std::string>());
  }
  return list;
}

}  // namespace fingerpost
