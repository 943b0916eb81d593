#include "tools/directory_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "shm/tenant_id.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

EntryImage image_at(const SqliteStatement& select, int column) {
  return {std::string(select.text(column)), std::string(select.text(column + 1)),
          std::string(select.text(column + 2))};
}

}  // namespace

Result<std::vector<EntryChange>> entry_history(Directory& directory, std::string_view entry) {
  if (const auto why = why_not_entry_id(entry)) {
    return Status(Code::refused, "entry id " + in_quotes(entry) + " " + std::string(*why));
  }
  SqliteStatement select = directory.db().prepare(
      "SELECT version, at, shard_before, state_before, target_before, shard_after, state_after, "
      "target_after, who, verb, note, CAST(round(julianday(at) * 86400000) AS INTEGER) "
      "FROM directory_history WHERE entry_id = ? ORDER BY version");
  select.bind(entry);
  std::vector<EntryChange> changes;
  bool was_frozen = false;
  std::int64_t frozen_since = 0;
  while (select.step()) {
    EntryChange change;
    change.version = select.number(0);
    change.at = select.text(1);
    change.before = image_at(select, 2);
    change.after = image_at(select, 5);
    change.who = select.text(8);
    change.verb = select.text(9);
    change.note = select.text(10);
    const bool frozen = change.after.state == "FROZEN";
    const std::int64_t at_ms = select.integer(11);
    if (frozen && !was_frozen) frozen_since = at_ms;
    // The clock of the database may have been set back between.
    if (!frozen && was_frozen) change.frozen_ms = std::max<std::int64_t>(0, at_ms - frozen_since);
    was_frozen = frozen;
    changes.push_back(std::move(change));
  }
  return changes;
}

Result<std::optional<EntryChange>> entry_at(Directory& directory, std::string_view entry,
                                            std::uint64_t version) {
  const SqliteTransaction look(directory.db(), SqliteTransaction::Kind::read);
  const std::uint64_t now = directory.version();
  if (version > now) {
    return Status(Code::refused,
                  fmt::format("version {} is not there yet: the directory is at {}", version, now));
  }
  const Result<std::vector<EntryChange>> changes = entry_history(directory, entry);
  if (!changes) return changes.status();
  std::optional<EntryChange> last;
  for (const EntryChange& change : *changes) {
    if (change.version <= version) last = change;
  }
  return last;
}

}  // namespace fingerpost
