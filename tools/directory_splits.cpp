#include "tools/directory_splits.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "shm/tenant_id.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

Status check_request(std::string_view id, std::uint32_t parts, std::uint32_t fewest) {
  if (const auto why = why_not_tenant_id(id)) {
    return {Code::refused, "tenant id " + in_quotes(id) + " " + std::string(*why)};
  }
  if (parts < fewest || parts > kPartsMax) {
    return {Code::refused,
            fmt::format("{} parts: from {} to {} are possible", parts, fewest, kPartsMax)};
  }
  return {};
}

std::string as_it_is(const TenantRow& row) {
  if (row.parts == 0) {
    return fmt::format("tenant {} is {} on shard {}, and not split", in_quotes(row.id), row.state,
                       in_quotes(row.shard));
  }
  return fmt::format("tenant {} is {} and has {} parts", in_quotes(row.id), row.state, row.parts);
}

std::string numbers_text(const std::vector<std::uint32_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

// Those it can merge into: the divisors for which every part is on the shard of the one it becomes.
std::vector<std::uint32_t> mergeable(const std::vector<TenantRow>& parts) {
  const auto count = static_cast<std::uint32_t>(parts.size());
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t fewer = 1; fewer < count; ++fewer) {
    if (count % fewer != 0) continue;
    bool agree = true;
    for (std::uint32_t part = fewer; part < count && agree; ++part) {
      agree = parts[part].shard == parts[part % fewer].shard;
    }
    if (agree) numbers.push_back(fewer);
  }
  return numbers;
}

std::string what_merges(const std::vector<TenantRow>& parts) {
  const std::vector<std::uint32_t> numbers = mergeable(parts);
  if (numbers.empty()) return "legal is: move its parts to the same shard first";
  return "legal is: merge into " + numbers_text(numbers);
}

// Why parts of different shards would become one; empty if none would.
std::string disagreement(const std::vector<TenantRow>& parts, std::uint32_t fewer) {
  for (std::uint32_t part = fewer; part < parts.size(); ++part) {
    const TenantRow& stays = parts[part % fewer];
    if (parts[part].shard != stays.shard) {
      return fmt::format("part {} is on shard {} and part {} on {}", part % fewer,
                         in_quotes(stays.shard), part, in_quotes(parts[part].shard));
    }
  }
  return {};
}

// The tenant's entry, made on the shard that it resolved to where it has none.
Result<TenantRow> own_entry(Directory& directory, std::string_view id) {
  if (auto row = find_entry(directory, id)) return *std::move(row);
  const std::string shard = fallback_shard(directory, id);
  if (shard.empty()) return Status(Code::absent, "there is no tenant " + in_quotes(id));
  directory.db()
      .prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)")
      .bind(id, shard)
      .run();
  return *find_entry(directory, id);
}

void set_parts(Directory& directory, std::string_view id, std::uint32_t parts) {
  directory.db()
      .prepare("UPDATE directory_split SET parts = ?2 WHERE entry_id = ?1")
      .bind(id, parts)
      .run();
}

}  // namespace

Result<std::uint64_t> split_tenant(Directory& directory, std::string_view id, std::uint32_t parts) {
  if (Status status = check_request(id, parts, 2); !status.ok()) return status;
  DirectoryChange change(directory, "tenant split", fmt::format("{} parts", parts));
  if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  const Result<TenantRow> row = own_entry(directory, id);
  if (!row) return row.status();
  if (row->state == "DELETED") {
    return Status(Code::conflict,
                  as_it_is(*row) + "; legal is: tenant create, which revives it on any shard");
  }
  if (row->parts == parts) return change.commit();
  if (row->parts == 0) {
    directory.db()
        .prepare("INSERT INTO directory_split (entry_id, parts) VALUES (?, ?)")
        .bind(id, parts)
        .run();
  } else if (parts % row->parts == 0) {
    set_parts(directory, id, parts);
  } else {
    return Status(
        Code::conflict,
        fmt::format("{}; legal is: split into a multiple of {}, at most {}; tenant merge makes "
                    "them fewer",
                    as_it_is(*row), row->parts, kPartsMax));
  }
  return change.commit();
}

Result<std::uint64_t> merge_tenant(Directory& directory, std::string_view id, std::uint32_t parts) {
  if (Status status = check_request(id, parts, 1); !status.ok()) return status;
  DirectoryChange change(directory, "tenant merge", fmt::format("{} parts", parts));
  const auto row = find_entry(directory, id);
  if (!row) {
    return Status(Code::absent, "tenant " + in_quotes(id) + " has no entry, and is not split");
  }
  if (row->parts == parts || (row->parts == 0 && parts == 1)) return change.commit();
  if (row->parts == 0) return Status(Code::conflict, as_it_is(*row) + "; legal is: tenant split");
  if (Status status = check_at_rest(directory, id); !status.ok()) return status;
  const std::vector<TenantRow> rows = list_parts(directory, id);
  if (row->state == "DELETED") {
    return Status(Code::conflict, as_it_is(*row) +
                                      ", which no object resolves by; tenant create "
                                      "and tenant purge drop them");
  }
  if (row->parts % parts != 0 || parts > row->parts) {
    return Status(Code::conflict, fmt::format("{}; {}, or tenant split into a multiple",
                                              as_it_is(*row), what_merges(rows)));
  }
  if (const std::string why = disagreement(rows, parts); !why.empty()) {
    return Status(Code::conflict,
                  fmt::format("{}: {}; {}", as_it_is(*row), why, what_merges(rows)));
  }
  if (parts == 1) {
    drop_split(directory, id);
  } else {
    set_parts(directory, id, parts);
  }
  return change.commit();
}

std::vector<TenantRow> list_parts(Directory& directory, std::string_view tenant) {
  SqliteStatement select = directory.db().prepare(fmt::format(
      "SELECT {} FROM shard_directory JOIN directory_part AS p USING (entry_id) WHERE p.tenant = ? "
      "ORDER BY p.part",
      kEntryColumns));
  select.bind(tenant);
  std::vector<TenantRow> rows;
  while (select.step()) rows.push_back(tenant_row_of(select));
  return rows;
}

void drop_split(Directory& directory, std::string_view id) {
  directory.db().prepare("DELETE FROM directory_split WHERE entry_id = ?").bind(id).run();
}

}  // namespace fingerpost
