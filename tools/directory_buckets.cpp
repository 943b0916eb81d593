#include "tools/directory_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "shm/tenant_id.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

// The range of text keys that begin with "bucket:": ';' follows ':'.
constexpr std::string_view kIsBucket = "entry_id >= 'bucket:' AND entry_id < 'bucket;'";

std::string bucket_id(std::uint32_t bucket) {
  return fmt::format("{}{}", kBucketPrefix, bucket);
}

Status no_buckets() {
  return {Code::refused, "this directory has no buckets: it was not made with --buckets"};
}

Result<std::vector<ShardShare>> shares_of(Directory& directory,
                                          const std::vector<std::string>& only) {
  const Result<std::vector<ShardRow>> shards = list_shards(directory);
  if (!shards) return shards.status();
  for (const std::string& name : only) {
    if (std::none_of(shards->begin(), shards->end(),
                     [&](const ShardRow& row) { return row.spec.name == name; })) {
      return Status(Code::refused, "there is no shard " + in_quotes(name));
    }
  }
  std::vector<ShardShare> shares;
  SqliteStatement count = directory.db().prepare(
      fmt::format("SELECT count(*) FROM shard_directory WHERE {} AND shard_id = ?", kIsBucket));
  for (const ShardRow& row : *shards) {
    if (!only.empty() && std::find(only.begin(), only.end(), row.spec.name) == only.end()) continue;
    count.bind(row.spec.name).step();
    shares.push_back({row.spec.name, row.spec.weight, count.number(0)});
  }
  return shares;
}

}  // namespace

std::vector<std::size_t> spread_buckets(std::vector<ShardShare> shares, std::size_t count) {
  // Which of two is fuller for its weight once it has one more: compared as fractions, without
  // division; at most 2^20 buckets times a 32-bit weight.
  const auto fuller = [&](std::size_t a, std::size_t b) {
    const auto left = (shares[a].buckets + 1) * shares[b].weight;
    const auto right = (shares[b].buckets + 1) * shares[a].weight;
    return left != right ? left > right : a > b;
  };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(fuller)> emptiest(fuller);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].weight != 0) emptiest.push(i);
  }
  std::vector<std::size_t> chosen;
  if (emptiest.empty()) return chosen;
  chosen.reserve(count);
  while (chosen.size() < count) {
    const std::size_t next = emptiest.top();
    emptiest.pop();
    chosen.push_back(next);
    ++shares[next].buckets;
    emptiest.push(next);
  }
  return chosen;
}

Result<AssignResult> assign_buckets(Directory& directory, const std::vector<std::string>& only,
                                    std::optional<std::pair<std::uint32_t, std::uint32_t>> range) {
  if (directory.layout().fallback != Fallback::buckets) return no_buckets();
  const std::uint32_t last_of_all = directory.layout().buckets - 1;
  const auto [first, last] = range.value_or(std::pair(0U, last_of_all));
  if (first > last || last > last_of_all) {
    return Status(Code::refused,
                  fmt::format("buckets {}-{}: the directory has 0-{}", first, last, last_of_all));
  }
  DirectoryChange change(directory, "bucket assign");
  const Result<std::vector<ShardShare>> shares = shares_of(directory, only);
  if (!shares) return shares.status();
  const Result<std::vector<BucketRow>> buckets = list_buckets(directory);
  if (!buckets) return buckets.status();
  std::vector<std::uint32_t> unassigned;
  for (std::uint32_t bucket = first; bucket <= last; ++bucket) {
    if ((*buckets)[bucket].shard.empty()) unassigned.push_back(bucket);
  }
  const std::vector<std::size_t> chosen = spread_buckets(*shares, unassigned.size());
  if (chosen.size() != unassigned.size()) {
    return Status(Code::refused, "no shard takes buckets: none is there, or all have weight 0");
  }
  SqliteStatement insert =
      directory.db().prepare("INSERT INTO shard_directory (entry_id, shard_id) VALUES (?, ?)");
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    insert.bind(bucket_id(unassigned[i]), (*shares)[chosen[i]].shard).run();
  }
  return AssignResult{chosen.size(), change.commit()};
}

Result<std::vector<BucketRow>> list_buckets(Directory& directory) {
  if (directory.layout().fallback != Fallback::buckets) return no_buckets();
  std::vector<BucketRow> rows(directory.layout().buckets);
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i].bucket = i;
  SqliteStatement select = directory.db().prepare(fmt::format(
      "SELECT entry_id, shard_id, state, target_shard, epoch FROM shard_directory WHERE {}",
      kIsBucket));
  while (select.step()) {
    const auto bucket = bucket_of_entry_id(select.text(0));
    if (!bucket || *bucket >= rows.size()) {
      return Status(Code::corrupt, "there is a row of bucket " + in_quotes(select.text(0)));
    }
    BucketRow& row = rows[*bucket];
    row.shard = select.text(1);
    row.state = select.text(2);
    row.target = select.text(3);
    row.epoch = select.number(4);
  }
  return rows;
}

}  // namespace fingerpost
