#include "tools/directory_pins.h"

#include <fmt/format.h>

#include "shm/tenant_id.h"
#include "tools/directory_entry.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::string_view kPinColumns = "entry_id, region, reason, who, at";

Pin pin_of(const SqliteStatement& select) {
  return {std::string(select.text(1)), std::string(select.text(2)), std::string(select.text(3)),
          std::string(select.text(4))};
}

Status check_request(std::string_view id, std::string_view region, std::string_view reason) {
  if (const auto why = why_not_tenant_id(id)) {
    return {Code::refused, "tenant id " + in_quotes(id) + " " + std::string(*why)};
  }
  for (const auto& [name, text] : {std::pair("region", region), std::pair("reason", reason)}) {
    if (const auto why = why_not_shard_field(text)) {
      return {Code::refused, fmt::format("the {} {}", name, *why)};
    }
  }
  return {};
}

Status check_known_region(Directory& directory, std::string_view region) {
  SqliteStatement select =
      directory.db().prepare("SELECT 1 FROM shard_topology WHERE region = ? LIMIT 1");
  if (region.empty() || select.bind(region).step()) return {};
  return {Code::refused, "there is no shard of region " + in_quotes(region)};
}

// Makes the tenant's own entry where its bucket or the hash rule answers.
Status take_own_entry(Directory& directory, std::string_view id) {
  if (directory.layout().fallback == Fallback::none || find_entry(directory, id)) return {};
  const std::string shard = fallback_shard(directory, id);
  if (shard.empty()) {
    return {Code::absent, fmt::format("{} answers for {}, and has no shard: bucket assign gives it "
                                      "one",
                                      directory.bucket_of(id), in_quotes(id))};
  }
  directory.db()
      .prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
      .bind(id, shard)
      .run();
  return {};
}

}  // namespace

Result<std::uint64_t> pin_tenant(Directory& directory, std::string_view id, std::string_view region,
                                 std::string_view reason) {
  if (Status status = check_request(id, region, reason); !status.ok()) return status;
  DirectoryChange change(directory, "tenant pin", reason);
  const std::optional<Pin> before = find_pin(directory, id);
  if (before && before->region == region && before->reason == reason) return change.commit();
  if (Status status = check_known_region(directory, region); !status.ok()) return status;
  if (!find_entry(directory, id)) {
    if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  }
  if (Status status = take_own_entry(directory, id); !status.ok()) return status;
  if (Status status = check_is_in(directory, id, region); !status.ok()) return status;
  directory.db()
      .prepare(
          "INSERT INTO directory_pin (entry_id, region, reason, who, at) SELECT ?, nullif(?, ''), "
          "nullif(?, ''), who, strftime('%Y-%m-%dT%H:%M:%fZ', 'now') FROM directory_session "
          "WHERE true ON CONFLICT (entry_id) DO UPDATE SET region = excluded.region, reason = "
          "excluded.reason, who = excluded.who, at = excluded.at")
      .bind(id, region, reason)
      .run();
  return change.commit();
}

Result<std::uint64_t> unpin_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_request(id, {}, {}); !status.ok()) return status;
  DirectoryChange change(directory, "tenant unpin");
  if (!find_pin(directory, id)) {
    return Status(Code::absent, "tenant " + in_quotes(id) + " is not pinned");
  }
  drop_pin(directory, id);
  return change.commit();
}

std::optional<Pin> find_pin(Directory& directory, std::string_view tenant) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM directory_pin WHERE entry_id = ?", kPinColumns));
  if (!select.bind(tenant).step()) return std::nullopt;
  return pin_of(select);
}

void visit_pins(Directory& directory,
                const std::function<void(const std::string& tenant, const Pin&)>& take) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM directory_pin ORDER BY entry_id", kPinColumns));
  while (select.step()) take(std::string(select.text(0)), pin_of(select));
}

Status check_is_in(Directory& directory, std::string_view id, std::string_view region) {
  SqliteStatement select = directory.db().prepare(
      "SELECT d.entry_id, t.shard_id, t.region, t.shard_id IS d.target_shard FROM ("
      "SELECT entry_id FROM shard_directory WHERE entry_id = ?1 AND state <> 'DELETED' "
      "UNION ALL SELECT entry_id FROM directory_part WHERE tenant = ?1) AS e "
      "JOIN shard_directory AS d ON d.entry_id = e.entry_id "
      "JOIN shard_topology AS t ON t.shard_id IN (d.shard_id, d.target_shard) "
      "WHERE t.region <> ?2 LIMIT 1");
  if (region.empty() || !select.bind(id, region).step()) return {};
  return {Code::conflict,
          fmt::format("{} is {} shard {}, of region {}: it cannot be pinned to {} before a move "
                      "there",
                      in_quotes(select.text(0)), select.integer(3) != 0 ? "on its way to" : "on",
                      in_quotes(select.text(1)), in_quotes(select.text(2)), in_quotes(region))};
}

Status check_region(Directory& directory, std::string_view entry, std::string_view shard) {
  const auto part = part_of_entry_id(entry);
  const std::string_view tenant = part ? part->tenant : entry;
  SqliteStatement select = directory.db().prepare(
      "SELECT p.region, t.region, coalesce(': ' || p.reason, '') FROM directory_pin AS p "
      "JOIN shard_topology AS t ON t.shard_id = ?2 "
      "WHERE p.entry_id = ?1 AND p.region IS NOT NULL AND t.region <> p.region");
  if (!select.bind(tenant, shard).step()) return {};
  return {Code::conflict,
          fmt::format("tenant {} is pinned to region {}{}; shard {} is of region {}",
                      in_quotes(tenant), in_quotes(select.text(0)), select.text(2),
                      in_quotes(shard), in_quotes(select.text(1)))};
}

void drop_pin(Directory& directory, std::string_view tenant) {
  directory.db().prepare("DELETE FROM directory_pin WHERE entry_id = ?").bind(tenant).run();
}

}  // namespace fingerpost
