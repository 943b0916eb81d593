#include "tools/directory_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "shm/tenant_id.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::string_view kColumns =
    "shard_id, primary_address, replicas, region, weight, attributes, epoch";

constexpr double kLoadMax = 1e15;  // as the schema's: whole tenants are still told apart

bool holds_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

std::string to_json_object(const std::vector<std::pair<std::string, std::string>>& attributes) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : attributes) object[name] = value;
  return object.dump();
}

Result<ShardRow> row_of(const SqliteStatement& select) {
  ShardRow row;
  row.spec.name = select.text(0);
  row.spec.primary = select.text(1);
  const auto replicas = from_json_list(select.text(2));
  const auto attributes = nlohmann::json::parse(select.text(5), nullptr, false);
  if (!replicas || !attributes.is_object()) {
    return Status(Code::corrupt, "shard " + in_quotes(row.spec.name) +
                                     ": replicas or attributes are not as the schema says");
  }
  row.spec.replicas = *replicas;
  row.spec.region = select.text(3);
  row.spec.weight = static_cast<std::uint32_t>(select.integer(4));
  for (const auto& [name, value] : attributes.items()) {
    row.spec.attributes.emplace_back(name,
                                     value.is_string() ? value.get<std::string>() : value.dump());
  }
  row.epoch = select.number(6);
  return row;
}

// nullopt inside: no such shard.
Result<std::optional<ShardRow>> find_shard(Directory& directory, std::string_view name) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM shard_topology WHERE shard_id = ?", kColumns));
  if (!select.bind(name).step()) return std::optional<ShardRow>();
  Result<ShardRow> row = row_of(select);
  if (!row) return row.status();
  return std::optional(*std::move(row));
}

Status no_such_shard(std::string_view name) {
  return {Code::absent, "there is no shard " + in_quotes(name)};
}

}  // namespace

std::optional<std::string_view> why_not_shard_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kShardNameBytesMax) return "is longer than 32 bytes";
  if (holds_control_character(name)) return "holds a control character";
  if (!is_utf8(name)) return "is not valid UTF-8";
  return std::nullopt;
}

std::optional<std::string_view> why_not_shard_field(std::string_view field) {
  if (field.size() > kShardFieldBytesMax) return "is longer than 1024 bytes";
  if (holds_control_character(field)) return "holds a control character";
  if (!is_utf8(field)) return "is not valid UTF-8";
  return std::nullopt;
}

std::optional<std::string_view> why_not_address(std::string_view address) {
  if (const auto why = why_not_shard_field(address)) return why;
  const std::size_t scheme = address.find("://");
  const std::string_view rest =
      scheme == std::string_view::npos ? address : address.substr(scheme + 3);
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos && rest.find('@', colon) != std::string_view::npos) {
    return "carries user:password@, and every worker can read the directory";
  }
  return std::nullopt;
}

Result<ShardSpec> edited(ShardSpec spec, const ShardEdit& edit) {
  if (const auto why = why_not_shard_name(spec.name)) {
    return Status(Code::refused, "shard name " + in_quotes(spec.name) + " " + std::string(*why));
  }
  const std::string of = "shard " + in_quotes(spec.name) + ": ";
  if (edit.primary) spec.primary = *edit.primary;
  if (edit.replicas) spec.replicas = *edit.replicas;
  if (edit.region) spec.region = *edit.region;
  if (edit.weight) spec.weight = *edit.weight;
  std::map<std::string, std::string> attributes(spec.attributes.begin(), spec.attributes.end());
  for (const auto& [name, value] : edit.attributes) {
    if (name.empty()) return Status(Code::refused, of + "an attribute has no name");
    for (const std::string& text : {name, value}) {
      if (const auto why = why_not_shard_field(text)) {
        return Status(Code::refused, of + "attribute " + in_quotes(text) + " " + std::string(*why));
      }
    }
    if (value.empty()) {
      attributes.erase(name);
    } else {
      attributes[name] = value;
    }
  }
  spec.attributes.assign(attributes.begin(), attributes.end());
  // An unacceptable address is not repeated: it may hold a password.
  if (const auto why = why_not_address(spec.primary))
    return Status(Code::refused, of + "the primary's address " + std::string(*why));
  for (const std::string& replica : spec.replicas) {
    if (replica.empty()) return Status(Code::refused, of + "a replica's address is empty");
    if (const auto why = why_not_address(replica))
      return Status(Code::refused, of + "a replica's address " + std::string(*why));
  }
  if (const auto why = why_not_shard_field(spec.region))
    return Status(Code::refused, of + "the region " + std::string(*why));
  if (spec.replicas.size() > kShardListMax || spec.attributes.size() > kShardListMax) {
    return Status(Code::refused,
                  of + fmt::format("{} replicas and {} attributes; at most {} each",
                                   spec.replicas.size(), spec.attributes.size(), kShardListMax));
  }
  return spec;
}

Result<std::vector<ShardRow>> list_shards(Directory& directory) {
  std::vector<ShardRow> rows;
  SqliteStatement select =
      directory.db().prepare(fmt::format("SELECT {}, tenants, reported, reported_at FROM "
                                         "shard_topology LEFT JOIN shard_load USING (shard_id) "
                                         "ORDER BY shard_id",
                                         kColumns));
  while (select.step()) {
    Result<ShardRow> row = row_of(select);
    if (!row) return row.status();
    row->tenants = select.number(7);
    if (!select.is_null(8)) row->reported = select.real(8);
    row->reported_at = select.text(9);
    rows.push_back(*std::move(row));
  }
  return rows;
}

void write_shard(Directory& directory, const ShardSpec& spec) {
  directory.db()
      .prepare(
          "INSERT INTO shard_topology (shard_id, primary_address, replicas, region, weight, "
          "attributes) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (shard_id) DO UPDATE SET "
          "primary_address = excluded.primary_address, replicas = excluded.replicas, region = "
          "excluded.region, weight = excluded.weight, attributes = excluded.attributes")
      .bind(spec.name, spec.primary, to_json_list(spec.replicas), spec.region, spec.weight,
            to_json_object(spec.attributes))
      .run();
}

Result<std::uint64_t> add_shard(Directory& directory, const ShardSpec& spec) {
  const Result<ShardSpec> checked = edited(spec, {});
  if (!checked) return checked.status();
  DirectoryChange change(directory, "shard add");
  const auto found = find_shard(directory, spec.name);
  if (!found) return found.status();
  if (*found) {
    if ((*found)->spec == *checked) return change.commit();
    return Status(Code::conflict, "shard " + in_quotes(spec.name) +
                                      " exists already, with other values; `shard set` changes it");
  }
  write_shard(directory, *checked);
  return change.commit();
}

Result<std::uint64_t> set_shard(Directory& directory, std::string_view name,
                                const ShardEdit& edit) {
  DirectoryChange change(directory, "shard set");
  const auto found = find_shard(directory, name);
  if (!found) return found.status();
  if (!*found) return no_such_shard(name);
  const Result<ShardSpec> spec = edited((*found)->spec, edit);
  if (!spec) return spec.status();
  write_shard(directory, *spec);
  return change.commit();
}

std::vector<ShardLoad> shard_loads(Directory& directory) {
  SqliteStatement select = directory.db().prepare(
      "SELECT shard_id, region, weight, tenants, reported FROM shard_topology LEFT JOIN shard_load "
      "USING (shard_id) ORDER BY shard_id");
  std::vector<ShardLoad> loads;
  while (select.step()) {
    ShardLoad load;
    load.shard = select.text(0);
    load.region = select.text(1);
    load.weight = static_cast<std::uint32_t>(select.number(2));
    load.tenants = select.number(3);
    if (!select.is_null(4)) load.reported = select.real(4);
    loads.push_back(std::move(load));
  }
  return loads;
}

Result<std::uint64_t> report_load(Directory& directory, std::string_view name, double load) {
  if (!(load >= 0 && load <= kLoadMax)) {
    return Status(Code::refused,
                  fmt::format("load {} of shard {}: from 0 to {:g} tenants' worth is possible",
                              load, in_quotes(name), kLoadMax));
  }
  DirectoryChange change(directory, "shard report");
  directory.db()
      .prepare(
          "UPDATE shard_load SET reported = ?2, reported_at = strftime('%Y-%m-%dT%H:%M:%fZ', "
          "'now') WHERE shard_id = ?1")
      .bind(name, load)
      .run();
  if (directory.db().changes() == 0) return no_such_shard(name);
  return change.commit();
}

Result<std::uint64_t> remove_shard(Directory& directory, std::string_view name) {
  DirectoryChange change(directory, "shard remove");
  const auto found = find_shard(directory, name);
  if (!found) return found.status();
  if (!*found) return no_such_shard(name);
  SqliteStatement count = directory.db().prepare(
      "SELECT count(*), count(*) FILTER (WHERE entry_id GLOB 'bucket:*') FROM shard_directory "
      "WHERE shard_id = ?1 OR target_shard = ?1");
  count.bind(name).step();
  if (count.integer(0) != 0) {
    return Status(
        Code::refused,
        fmt::format("shard {} is named by {} entries ({} of them buckets); move them first",
                    in_quotes(name), count.integer(0), count.integer(1)));
  }
  const auto& hash_shards = directory.layout().hash_shards;
  if (std::find(hash_shards.begin(), hash_shards.end(), name) != hash_shards.end()) {
    return Status(Code::refused,
                  "shard " + in_quotes(name) + " is in the hash list, which never changes");
  }
  count.reset();
  directory.db().prepare("DELETE FROM shard_topology WHERE shard_id = ?").bind(name).run();
  return change.commit();
}

}  // namespace fingerpost
