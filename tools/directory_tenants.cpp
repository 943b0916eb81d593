#include "tools/directory_tenants.h"

#include <fmt/format.h>

#include "shm/hash.h"
#include "shm/tenant_id.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::string_view kColumns = "entry_id, shard_id, state, target_shard, epoch, updated_at";

Status check_id(std::string_view id) {
  if (const auto why = why_not_tenant_id(id)) {
    return {Code::refused, "tenant id " + in_quotes(id) + " " + std::string(*why)};
  }
  return {};
}

TenantRow row_of(const SqliteStatement& select) {
  return {std::string(select.text(0)),
          std::string(select.text(1)),
          std::string(select.text(2)),
          std::string(select.text(3)),
          select.number(4),
          std::string(select.text(5))};
}

std::optional<TenantRow> find_entry(Directory& directory, std::string_view id) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM shard_directory WHERE entry_id = ?", kColumns));
  if (!select.bind(id).step()) return std::nullopt;
  return row_of(select);
}

bool is_moving(const TenantRow& row) {
  return row.state != "ACTIVE" && row.state != "DELETED";
}

Status moving(const TenantRow& row) {
  return {Code::conflict,
          fmt::format("{} is {} on shard {} (epoch {}): finish or abort its move first",
                      in_quotes(row.id), row.state, in_quotes(row.shard), row.epoch)};
}

// The shard that answers for an id without an entry of its own; empty if none does.
std::string fallback_shard(Directory& directory, std::string_view id) {
  const DirectoryLayout& layout = directory.layout();
  switch (layout.fallback) {
    case Fallback::none:
      return {};
    case Fallback::buckets: {
      const auto bucket = find_entry(directory, directory.bucket_of(id));
      return bucket ? bucket->shard : std::string();
    }
    case Fallback::hash:
      return layout.hash_shards[placement_hash(id) % layout.hash_shards.size()];
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

}  // namespace

Result<std::optional<TenantRow>> get_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  return find_entry(directory, id);
}

Status check_bucket_at_rest(Directory& directory, std::string_view bucket, std::string_view id) {
  if (bucket.empty()) return {};
  const auto row = find_entry(directory, bucket);
  if (!row || !is_moving(*row)) return {};
  return {Code::conflict,
          fmt::format(
              "{} answers for {}, and is {} on shard {} (epoch {}): finish or abort its move first",
              row->id, in_quotes(id), row->state, in_quotes(row->shard), row->epoch)};
}

Result<std::uint64_t> create_tenant(Directory& directory, std::string_view id,
                                    std::string_view shard) {
  if (Status status = check_id(id); !status.ok()) return status;
  if (const auto why = why_not_shard_name(shard)) {
    return Status(Code::refused, "shard name " + in_quotes(shard) + " " + std::string(*why));
  }
  DirectoryChange change(directory, "tenant create");
  SqliteStatement known = directory.db().prepare("SELECT 1 FROM shard_topology WHERE shard_id = ?");
  if (!known.bind(shard).step())
    return Status(Code::refused, "there is no shard " + in_quotes(shard));
  const auto row = find_entry(directory, id);
  if (!row) {
    if (Status status = check_bucket_at_rest(directory, directory.bucket_of(id), id); !status.ok())
      return status;
    directory.db()
        .prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
        .bind(id, shard)
        .run();
  } else if (row->state == "DELETED") {
    directory.db()
        .prepare(
            "UPDATE shard_directory SET shard_id = ?, state = 'ACTIVE', target_shard = NULL WHERE "
            "entry_id = ?")
        .bind(shard, id)
        .run();
  } else if (row->shard != shard) {
    return Status(
        Code::conflict,
        fmt::format("tenant {} exists on shard {} (state {}, epoch {}); only a move changes that",
                    in_quotes(id), in_quotes(row->shard), row->state, row->epoch));
  } else if (is_moving(*row)) {
    return moving(*row);
  }
  return change.commit();
}

Result<std::uint64_t> delete_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  DirectoryChange change(directory, "tenant delete");
  const auto row = find_entry(directory, id);
  if (row) {
    if (is_moving(*row)) return moving(*row);
    directory.db()
        .prepare(
            "UPDATE shard_directory SET state = 'DELETED', target_shard = NULL WHERE entry_id = ?")
        .bind(id)
        .run();
    return change.commit();
  }
  const std::string shard = fallback_shard(directory, id);
  if (shard.empty()) return Status(Code::absent, "there is no tenant " + in_quotes(id));
  if (Status status = check_bucket_at_rest(directory, directory.bucket_of(id), id); !status.ok())
    return status;
  directory.db()
      .prepare("INSERT INTO shard_directory (entry_id, shard_id, state) VALUES (?, ?, 'DELETED')")
      .bind(id, shard)
      .run();
  return change.commit();
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
                                         kColumns));
  select.bind(page.prefix, page.after, end,
              page.limit == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(page.limit));
  while (select.step()) take(row_of(select));
}

}  // namespace fingerpost
