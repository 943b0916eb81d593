#include "tools/directory_tenants.h"

#include <fmt/format.h>

#include "shm/tenant_id.h"
#include "tools/directory_pins.h"
#include "tools/directory_shards.h"
#include "tools/directory_splits.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

Status check_id(std::string_view id) {
  if (const auto why = why_not_tenant_id(id)) {
    return {Code::refused, "tenant id " + in_quotes(id) + " " + std::string(*why)};
  }
  return {};
}

// The least text that is greater than every text with this prefix; empty if there is none.
std::string end_of_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xFF) prefix.pop_back();
  if (!prefix.empty())
    prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

Status check_wish(const CreateWish& wish) {
  if (!wish.shard.empty() && !wish.region.empty()) {
    return {Code::refused, "a tenant is created on a shard or in a region, not both"};
  }
  if (const auto why = why_not_shard_field(wish.region)) {
    return {Code::refused, "region " + in_quotes(wish.region) + " " + std::string(*why)};
  }
  if (wish.shard.empty()) return {};
  if (const auto why = why_not_shard_name(wish.shard)) {
    return {Code::refused, "shard name " + in_quotes(wish.shard) + " " + std::string(*why)};
  }
  return {};
}

Status check_known(Directory& directory, const CreateWish& wish) {
  SqliteStatement known = directory.db().prepare(
      "SELECT 1 FROM shard_topology WHERE shard_id = ?1 OR (?1 = '' AND region = ?2) LIMIT 1");
  if (wish.shard.empty() && wish.region.empty()) return {};
  if (known.bind(wish.shard, wish.region).step()) return {};
  return {Code::refused, wish.shard.empty()
                             ? "there is no shard of region " + in_quotes(wish.region)
                             : "there is no shard " + in_quotes(wish.shard)};
}

std::string region_of(Directory& directory, std::string_view shard) {
  SqliteStatement select =
      directory.db().prepare("SELECT region FROM shard_topology WHERE shard_id = ?");
  return select.bind(shard).step() ? std::string(select.text(0)) : std::string();
}

// Whether a tenant that exists is where it is wished.
Status check_is_there(Directory& directory, const TenantRow& row, const CreateWish& wish) {
  if (row.parts != 0) {
    return {Code::conflict,
            fmt::format("tenant {} exists, split into {} parts", in_quotes(row.id), row.parts)};
  }
  const bool there = wish.shard.empty()
                         ? wish.region.empty() || region_of(directory, row.shard) == wish.region
                         : row.shard == wish.shard;
  if (there) return {};
  return {Code::conflict,
          fmt::format("tenant {} exists on shard {} (state {}, epoch {}); only a move changes that",
                      in_quotes(row.id), in_quotes(row.shard), row.state, row.epoch)};
}

// What answers for a tenant that has no entry, in a directory with a fallback.
std::string answerer_of(const Directory& directory, std::string_view id) {
  const std::string bucket = directory.bucket_of(id);
  return bucket.empty() ? "the hash rule" : bucket;
}

// What answers for a tenant that has no entry, where that is good enough for it.
Result<Created> answered_already(Directory& directory, std::string_view id) {
  Created created;
  created.shard = fallback_shard(directory, id);
  created.answered_by = answerer_of(directory, id);
  if (created.shard.empty()) {
    return Status(Code::absent,
                  fmt::format("{} answers for {}, and has no shard: bucket assign gives it one, or "
                              "give --shard or --region",
                              created.answered_by, in_quotes(id)));
  }
  return created;
}

// For a tenant that is new, or was DELETED.
Result<Created> choose_shard(Directory& directory, std::string_view id, const CreateWish& wish) {
  Created created;
  created.shard = wish.shard;
  if (created.shard.empty()) {
    const auto pin = find_pin(directory, id);
    const std::string region = wish.region.empty() && pin ? pin->region : wish.region;
    if (region.empty() && directory.layout().fallback != Fallback::none) {
      return answered_already(directory, id);
    }
    const std::vector<ShardLoad> loads = shard_loads(directory);
    const auto chosen = place(loads, region, id);
    if (!chosen) {
      return Status(Code::refused,
                    fmt::format("no shard{} takes new tenants: none is there, or all have weight 0",
                                region.empty() ? "" : " of region " + in_quotes(region)));
    }
    created.shard = loads[*chosen].shard;
  }
  if (Status status = check_region(directory, id, created.shard); !status.ok()) return status;
  return created;
}

void write_entry(Directory& directory, std::string_view id, std::string_view shard, bool revived) {
  if (!revived) {
    directory.db()
        .prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
        .bind(id, shard)
        .run();
    return;
  }
  drop_split(directory, id);
  directory.db()
      .prepare(
          "UPDATE shard_directory SET shard_id = ?, state = 'ACTIVE', target_shard = NULL WHERE "
          "entry_id = ?")
      .bind(shard, id)
      .run();
}

}  // namespace

Result<std::optional<TenantRow>> get_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  return find_entry(directory, id);
}

Result<Created> create_tenant(Directory& directory, std::string_view id, const CreateWish& wish) {
  if (Status status = check_id(id); !status.ok()) return status;
  if (Status status = check_wish(wish); !status.ok()) return status;
  DirectoryChange change(directory, "tenant create");
  if (Status status = check_known(directory, wish); !status.ok()) return status;
  const auto row = find_entry(directory, id);
  if (row && row->state != "DELETED") {
    if (Status status = check_is_there(directory, *row, wish); !status.ok()) return status;
  }
  if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  Created created;
  if (row && row->state != "DELETED") {
    created.shard = row->shard;
  } else {
    Result<Created> chosen = choose_shard(directory, id, wish);
    if (!chosen) return chosen.status();
    created = *std::move(chosen);
    if (row) created.answered_by.clear();  // it has an entry, which must say that it is back
    created.written = created.answered_by.empty();
    if (created.written) write_entry(directory, id, created.shard, row.has_value());
  }
  // Of a dry run everything is done but the commit.
  created.version = wish.dry_run ? change.version_before() : change.commit();
  return created;
}

Result<std::uint64_t> create_tenant(Directory& directory, std::string_view id,
                                    std::string_view shard) {
  CreateWish wish;
  wish.shard = shard;
  // Not taken for a wish that was left open.
  if (shard.empty()) return Status(Code::refused, "shard name '' is empty");
  const Result<Created> created = create_tenant(directory, id, wish);
  if (!created) return created.status();
  return created->version;
}

Result<Deleted> delete_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  DirectoryChange change(directory, "tenant delete");
  if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  if (find_entry(directory, id)) {
    directory.db()
        .prepare(
            "UPDATE shard_directory SET state = 'DELETED', target_shard = NULL WHERE entry_id = ?")
        .bind(id)
        .run();
    return Deleted{{}, {}, change.commit()};
  }
  const std::string shard = fallback_shard(directory, id);
  if (shard.empty()) {
    const std::string bucket = directory.bucket_of(id);
    return Status(Code::absent,
                  "there is no tenant " + in_quotes(id) + ": it has no entry" +
                      (bucket.empty() ? "" : ", and " + bucket + " has no shard either"));
  }
  directory.db()
      .prepare("INSERT INTO shard_directory (entry_id, shard_id, state) VALUES (?, ?, 'DELETED')")
      .bind(id, shard)
      .run();
  return Deleted{answerer_of(directory, id), shard, change.commit()};
}

void list_tenants(Directory& directory, const TenantPage& page,
                  const std::function<void(const TenantRow&)>& take) {
  const std::string end = end_of_prefix(page.prefix);
  // Buckets and parts are ranges of keys too: ';' follows ':'.
  SqliteStatement select =
      directory.db().prepare(fmt::format("SELECT {} FROM shard_directory WHERE entry_id >= ?1 AND "
                                         "entry_id > ?2 AND (?3 = '' OR entry_id < ?3) "
                                         "AND NOT (entry_id >= 'bucket:' AND entry_id < 'bucket;') "
                                         "AND NOT (entry_id >= 'part:' AND entry_id < 'part;') "
                                         "ORDER BY entry_id LIMIT ?4",
                                         kEntryColumns));
  select.bind(page.prefix, page.after, end,
              page.limit == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(page.limit));
  while (select.step()) take(tenant_row_of(select));
}

}  // namespace fingerpost
