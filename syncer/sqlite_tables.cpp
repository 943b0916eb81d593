#include "syncer/sqlite_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace fingerpost {
namespace {

[[noreturn]] void refuse(const SqliteDb& db, const std::string& what) {
  throw SqliteError({Code::refused, db.path() + ": " + what});
}

Fallback parse_fallback(const SqliteDb& db, std::string_view text) {
  if (text == "none") return Fallback::none;
  if (text == "buckets") return Fallback::buckets;
  if (text == "hash") return Fallback::hash;
  refuse(db, fmt::format("fallback '{}' is not known to this build", text));
}

// A trigger holds these bounds; whoever dropped it gets an error here instead of a wrong shard.
void check_shard(const SqliteDb& db, const ShardSpec& shard) {
  const auto refuse_shard = [&](std::string_view what) {
    refuse(db, fmt::format("shard '{}' has {}", shard.name, what));
  };
  const auto too_long = [](const std::string& field) { return field.size() > kShardFieldBytesMax; };
  if (shard.name.empty() || shard.name.size() > kShardNameBytesMax) {
    refuse_shard(fmt::format("a name of {} bytes, 1 to {} are possible", shard.name.size(),
                             kShardNameBytesMax));
  }
  if (too_long(shard.primary) || too_long(shard.region) ||
      std::any_of(shard.replicas.begin(), shard.replicas.end(), too_long) ||
      std::any_of(shard.attributes.begin(), shard.attributes.end(), [&](const auto& attribute) {
        return too_long(attribute.first) || too_long(attribute.second);
      })) {
    refuse_shard(fmt::format("a field of more than {} bytes", kShardFieldBytesMax));
  }
  if (shard.replicas.size() > kShardListMax || shard.attributes.size() > kShardListMax) {
    refuse_shard(fmt::format("{} replicas and {} attributes, at most {} are possible",
                             shard.replicas.size(), shard.attributes.size(), kShardListMax));
  }
}

}  // namespace

Result<std::vector<std::string>> parse_string_list(std::string_view json) {
  const auto value = nlohmann::json::parse(json, nullptr, false);
  const bool is_list = value.is_array() && std::all_of(value.begin(), value.end(),
                                                       [](const auto& v) { return v.is_string(); });
  if (!is_list) return Status{Code::refused, fmt::format("'{}' is no JSON array of strings", json)};
  return value.get<std::vector<std::string>>();
}

Result<std::vector<std::pair<std::string, std::string>>> parse_string_map(std::string_view json) {
  const auto value = nlohmann::json::parse(json, nullptr, false);
  const bool is_map = value.is_object() && std::all_of(value.begin(), value.end(),
                                                       [](const auto& v) { return v.is_string(); });
  if (!is_map) return Status{Code::refused, fmt::format("'{}' is no JSON object of strings", json)};
  std::vector<std::pair<std::string, std::string>> map;
  for (const auto& [name, text] : value.items()) map.emplace_back(name, text.get<std::string>());
  return map;
}

void check_is_directory(SqliteDb& db) {
  constexpr std::string_view kMissing =
      "SELECT group_concat(name, ', ') FROM (SELECT column1 AS name FROM (VALUES "
      "('shard_directory'), "
      "('directory_version'), ('directory_layout'), ('shard_topology'), ('directory_history'), "
      "('directory_removed'), ('directory_split'))) WHERE name NOT IN (SELECT name FROM "
      "sqlite_schema WHERE type = 'table')";
  SqliteStatement missing = db.prepare(kMissing);
  if (missing.step() && !missing.is_null(0)) {
    refuse(db, fmt::format("is no fingerpost directory: it lacks {} (`fingerpost init` makes one)",
                           missing.text(0)));
  }
  SqliteStatement layout = db.prepare("SELECT schema_version FROM directory_layout WHERE id = 1");
  if (!layout.step()) refuse(db, "is no complete directory: directory_layout has no row");
  if (layout.number(0) > kSchemaVersionMax) {
    refuse(db, fmt::format("is of schema version {}, this build reads up to {}", layout.number(0),
                           kSchemaVersionMax));
  }
}

DirectoryLayout read_layout_row(SqliteDb& db) {
  SqliteStatement row = db.prepare(
      "SELECT directory_id, schema_version, fallback, buckets, hash_shards, replay_floor, epoch "
      "FROM directory_layout WHERE id = 1");
  if (!row.step()) refuse(db, "is no complete directory: directory_layout has no row");
  DirectoryLayout layout;
  const std::optional<DirectoryId> id = parse_directory_id(row.text(0));
  if (!id) refuse(db, fmt::format("directory id '{}' is no lower-case UUID", row.text(0)));
  layout.directory_id = *id;
  layout.schema_version = static_cast<std::uint32_t>(row.number(1));
  layout.fallback = parse_fallback(db, row.text(2));
  layout.buckets = static_cast<std::uint32_t>(row.number(3));
  Result<std::vector<std::string>> shards = parse_string_list(row.text(4));
  if (!shards) refuse(db, "the hash list " + shards.status().message());
  layout.hash_shards = *std::move(shards);
  layout.replay_floor = row.number(5);
  layout.epoch = row.number(6);
  if ((layout.buckets > 0) != (layout.fallback == Fallback::buckets) ||
      layout.hash_shards.empty() != (layout.fallback != Fallback::hash)) {
    refuse(db, fmt::format("fallback '{}' does not go with {} buckets and {} shards to hash over",
                           row.text(2), layout.buckets, layout.hash_shards.size()));
  }
  return layout;
}

std::uint64_t read_topology_epoch(SqliteDb& db) {
  return static_cast<std::uint64_t>(
      db.integer("SELECT topology_epoch FROM directory_layout WHERE id = 1"));
}

std::vector<ShardSpec> read_topology_rows(SqliteDb& db) {
  std::vector<ShardSpec> topology;
  SqliteStatement row = db.prepare(
      "SELECT shard_id, primary_address, replicas, region, weight, attributes FROM shard_topology "
      "ORDER BY shard_id");
  while (row.step()) {
    ShardSpec shard;
    shard.name = row.text(0);
    shard.primary = row.text(1);
    Result<std::vector<std::string>> replicas = parse_string_list(row.text(2));
    if (!replicas) {
      refuse(db, fmt::format("the replicas of shard '{}': {}", shard.name,
                             replicas.status().message()));
    }
    shard.replicas = *std::move(replicas);
    shard.region = row.text(3);
    shard.weight = static_cast<std::uint32_t>(row.number(4));
    auto attributes = parse_string_map(row.text(5));
    if (!attributes) {
      refuse(db, fmt::format("the attributes of shard '{}': {}", shard.name,
                             attributes.status().message()));
    }
    shard.attributes = *std::move(attributes);
    check_shard(db, shard);
    topology.push_back(std::move(shard));
  }
  return topology;
}

std::uint64_t read_approved_version(SqliteDb& db) {
  return static_cast<std::uint64_t>(
      db.integer("SELECT coalesce(max(version), 0) FROM directory_approval"));
}

Cursor read_position(SqliteDb& db) {
  SqliteStatement row = db.prepare(
      "SELECT v.version, h.nonce FROM directory_version AS v "
      "LEFT JOIN directory_history AS h ON h.version = v.version WHERE v.id = 1");
  if (!row.step()) refuse(db, "is no complete directory: directory_version has no row");
  return {row.number(0), row.number(1)};
}

bool history_has(SqliteDb& db, const Cursor& cursor) {
  SqliteStatement row = db.prepare("SELECT nonce FROM directory_history WHERE version = ?");
  row.bind(cursor.version);
  return row.step() && row.number(0) == cursor.nonce;
}

}  // namespace fingerpost
