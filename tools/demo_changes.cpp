#include "tools/demo_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "tools/directory_moves.h"

namespace fingerpost::demo {
namespace {

constexpr std::size_t kOpenMovesMax = 8;
constexpr std::uint64_t kStepsOfAMove = 3;
constexpr std::chrono::minutes kDeadline{15};

std::string shard_name(std::uint64_t shard) {
  return fmt::format("s{}", shard + 1);
}

std::string address_of(std::uint64_t shard, std::uint64_t number) {
  return fmt::format("10.0.{}.{}:5432", shard + 1, number);
}

std::uint64_t version_of(const Result<MoveStep>& step) {
  if (!step.ok()) throw std::runtime_error("a move went wrong: " + step.status().message());
  return step->version;
}

}  // namespace

Changes::Changes(Directory& directory, const std::vector<std::string>& ids, Ledger& ledger)
    : directory_(directory), ids_(ids), ledger_(ledger) {
  write_down_entries();
  for (Entry& shard : ledger_.board().shards) {
    shard.announce(1, 1);
    shard.committed(monotonic_ns());
  }
}

void Changes::write_down_entries() {
  auto row = directory_.db().prepare(
      "SELECT CAST(substr(shard_id, 2) AS INTEGER) - 1, epoch FROM shard_directory "
      "WHERE entry_id = ?");
  const auto write_down = [&](const std::string& id, Entry& entry) {
    row.bind(id);
    if (!row.step()) throw std::runtime_error(id + " has no entry");
    entry.announce(row.number(1), ledger_value(row.number(0), State::active));
    entry.committed(monotonic_ns());
  };
  for (std::size_t i = 0; i < ids_.size(); ++i) write_down(ids_[i], ledger_.tenant(i));
  for (std::size_t i = 0; i < kBuckets; ++i)
    write_down(fmt::format("bucket:{}", i), ledger_.board().buckets[i]);
}

template <class Step>
std::uint64_t Changes::commit_step(Entry& entry, std::uint64_t value, const Step& step) {
  const std::uint64_t epoch = directory_.version() + 1;
  entry.announce(epoch, value);
  const std::uint64_t version = step();
  if (version != epoch)
    throw std::runtime_error(fmt::format("made version {}, not {}", version, epoch));
  entry.committed(monotonic_ns());
  ++commits_;
  return version;
}

std::optional<std::uint64_t> Changes::commit_one() {
  if (random_() % 16 == 0) return fail_over();
  const bool goes_on = open_.size() == kOpenMovesMax || (!open_.empty() && random_() % 4 != 0);
  if (!goes_on) return begin_move();
  OpenMove move = std::move(open_.front());
  open_.pop_front();
  return advance(std::move(move));
}

std::optional<std::uint64_t> Changes::fail_over() {
  const std::size_t shard = random_() % kShards;
  Entry& entry = ledger_.board().shards[shard];
  if (entry.is_full()) return std::nullopt;
  const std::uint64_t number = entry.value() + 1;
  entry.announce(number, number);
  DirectoryChange change(directory_, "demo");
  directory_.db()
      .prepare("UPDATE shard_topology SET primary_address = ? WHERE shard_id = ?")
      .bind(address_of(shard, number), shard_name(shard))
      .run();
  const std::uint64_t version = change.commit();
  entry.committed(monotonic_ns());
  ++commits_;
  return version;
}

std::optional<std::uint64_t> Changes::begin_move() {
  const bool is_bucket = random_() % 8 == 0;
  const std::size_t index = random_() % (is_bucket ? kBuckets : ids_.size());
  OpenMove move;
  move.id = is_bucket ? fmt::format("bucket:{}", index) : ids_[index];
  move.entry = is_bucket ? &ledger_.board().buckets[index] : &ledger_.tenant(index);
  const bool is_moving = std::any_of(open_.begin(), open_.end(),
                                     [&](const OpenMove& other) { return other.id == move.id; });
  if (is_moving || !move.entry->has_room_for(kStepsOfAMove)) return std::nullopt;
  move.source = shard_of(move.entry->value());
  move.target = (move.source + 1 + random_() % (kShards - 1)) % kShards;
  const std::uint64_t version =
      commit_step(*move.entry, ledger_value(move.source, State::migrating), [&] {
        return version_of(mark_move(directory_, move.id, shard_name(move.target), kDeadline, {}));
      });
  open_.push_back(std::move(move));
  return version;
}

std::uint64_t Changes::advance(OpenMove move) {
  Entry& entry = *move.entry;
  if (state_of(entry.value()) == State::migrating) {
    const std::uint64_t version = commit_step(entry, ledger_value(move.source, State::frozen), [&] {
      return version_of(freeze_move(directory_, move.id, {}));
    });
    open_.push_back(std::move(move));
    return version;
  }
  if (random_() % 8 == 0) {
    return commit_step(entry, ledger_value(move.source, State::active),
                       [&] { return version_of(abort_move(directory_, move.id, {})); });
  }
  const std::uint64_t version = commit_step(entry, ledger_value(move.target, State::active), [&] {
    return version_of(flip_move(directory_, move.id, {}));
  });
  ++moved_;
  return version;
}

void Changes::finish() {
  while (!open_.empty()) {
    OpenMove move = std::move(open_.front());
    open_.pop_front();
    advance(std::move(move));
  }
}

}  // namespace fingerpost::demo
