#include "tools/directory_tenants.h"

#include <fmt/format.h>

#include "shm/tenant_id.h"
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

}  // namespace

Result<std::optional<TenantRow>> get_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  return find_entry(directory, id);
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
  if (row && row->state != "DELETED" && row->shard != shard) {
    return Status(
        Code::conflict,
        fmt::format("tenant {} exists on shard {} (state {}, epoch {}); only a move changes that",
                    in_quotes(id), in_quotes(row->shard), row->state, row->epoch));
  }
  if (row && row->state != "DELETED" && row->parts != 0) {
    return Status(Code::conflict,
                  fmt::format("tenant {} exists, split into {} parts", in_quotes(id), row->parts));
  }
  if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  if (!row) {
    directory.db()
        .prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
        .bind(id, shard)
        .run();
  } else if (row->state == "DELETED") {
    drop_split(directory, id);
    directory.db()
        .prepare(
            "UPDATE shard_directory SET shard_id = ?, state = 'ACTIVE', target_shard = NULL WHERE "
            "entry_id = ?")
        .bind(shard, id)
        .run();
  }
  return change.commit();
}

Result<std::uint64_t> delete_tenant(Directory& directory, std::string_view id) {
  if (Status status = check_id(id); !status.ok()) return status;
  DirectoryChange change(directory, "tenant delete");
  if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  if (find_entry(directory, id)) {
    directory.db()
        .prepare(
            "UPDATE shard_directory SET state = 'DELETED', target_shard = NULL WHERE entry_id = ?")
        .bind(id)
        .run();
    return change.commit();
  }
  const std::string shard = fallback_shard(directory, id);
  if (shard.empty()) return Status(Code::absent, "there is no tenant " + in_quotes(id));
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
                                         kEntryColumns));
  select.bind(page.prefix, page.after, end,
              page.limit == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(page.limit));
  while (select.step()) take(tenant_row_of(select));
}

}  // namespace fingerpost
