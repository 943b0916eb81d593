// `fingerpost move …`: what changes the shard of an entry that exists, step by step: mark, freeze,
// flip, or abort. Each step is one UPDATE that compares the entry's state and epoch and the move's
// token, and changes one row; else it is refused, with what is there and what is legal.
//
// Without a check at the shard, FROZEN is advice, and a move can lose writes.
//
// The deadline only says from when on anybody may abort, by the database's clock. Nothing else
// looks at it: FROZEN stays until somebody says otherwise here, and whoever holds the token may
// still flip after it.
//
// Where the answer to a COMMIT is lost, each step looks for itself by its token before it reports;
// a caller that was lost with it repeats the step with the token, and gets the version of the
// first time.
//
// Throws SqliteError.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/status.h"
#include "tools/directory.h"
#include "tools/directory_entry.h"

namespace fingerpost {

inline constexpr std::string_view kMoveWarning =
    "Without a check at the shard, FROZEN is advice, and a move can lose writes.";

struct Mover {
  std::string who;    // who acts, and owns what is marked; empty: this_user()
  std::string token;  // empty: that of the open move, if it is who's own
};

struct MoveStep {
  std::uint64_t version = 0;  // of the step; of a repeat, that of the first time
  std::string token;          // empty where an abort met a move that no verb recorded
};

// `entry` is a tenant, "bucket:N" or "part:K:TENANT"; a split tenant is moved by its parts. A
// tenant that its bucket or the hash rule answers for gets an entry of its own, on the shard that
// it resolved to. Absent if nothing answers for it.
// Conflict if it is pinned to another region than `to` is of.
Result<MoveStep> mark_move(Directory& directory, std::string_view entry, std::string_view to,
                           std::chrono::milliseconds deadline, const Mover& mover);
Result<MoveStep> freeze_move(Directory& directory, std::string_view entry, const Mover& mover);
// The entry is ACTIVE on the target from then on.
Result<MoveStep> flip_move(Directory& directory, std::string_view entry, const Mover& mover);
// The entry is ACTIVE again on the shard where it is. What plain SQL changed of it since the last
// step stays, except that MIGRATING and FROZEN end; a move that no verb recorded anybody may end.
Result<MoveStep> abort_move(Directory& directory, std::string_view entry, const Mover& mover);

// In the order of their deadlines.
std::vector<MoveRow> list_moves(Directory& directory);

struct Reaped {
  std::vector<MoveRow> moves;  // as they were, each aborted since
  std::uint64_t version = 0;
};

// Aborts every move that is past its deadline, each in a transaction of its own.
Reaped reap_moves(Directory& directory, std::string_view who = {});

}  // namespace fingerpost
