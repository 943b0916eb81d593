#include "tools/directory_epochs.h"

#include <fmt/format.h>

#include <string>

#include "tools/directory_moves.h"
#include "tools/text.h"

namespace fingerpost {

Result<std::uint64_t> rebase_directory(Directory& directory, std::uint64_t above) {
  if (above > kRebaseMax) {
    return Status(Code::refused,
                  fmt::format("--above {}: at most {} is possible", above, kRebaseMax));
  }
  DirectoryChange change(directory, "directory rebase", fmt::format("above {}", above));
  const std::vector<MoveRow> moves = list_moves(directory);
  if (!moves.empty()) {
    return Status(
        Code::conflict,
        fmt::format("{} moves are open; of {}, {}: finish or abort them first", moves.size(),
                    in_quotes(moves.front().entry), described(moves.front())));
  }
  if (directory.version() <= above) {
    directory.db().prepare("UPDATE directory_version SET version = ?").bind(above + 1).run();
  }
  // What a batch brings is applied in this order too: topology, then what names it.
  directory.db().exec(
      "INSERT INTO shard_topology_stamp (shard_id) SELECT shard_id FROM shard_topology;"
      "INSERT INTO directory_restamp (entry_id) SELECT entry_id FROM shard_directory ORDER BY "
      "entry_id;"
      "UPDATE directory_layout SET epoch = (SELECT version FROM directory_version)");
  return change.commit();
}

Result<std::uint64_t> approve_version(Directory& directory, std::uint64_t version,
                                      std::string_view who) {
  const std::string by = who.empty() ? this_user() : std::string(who);
  DirectoryChange change(directory, "approve", {}, by);
  const std::uint64_t now = directory.version();
  if (version > now) {
    return Status(Code::refused,
                  fmt::format("version {} is not there yet: the directory is at {}", version, now));
  }
  directory.db()
      .prepare(
          "INSERT INTO directory_approval (version, who, at) VALUES (?, ?, "
          "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) ON CONFLICT DO NOTHING")
      .bind(version, by)
      .run();
  return change.commit();
}

}  // namespace fingerpost
