#include "tools/directory_moves.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <optional>

#include "shm/tenant_id.h"
#include "tools/directory_pins.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::string_view kMark = "mark";
constexpr std::string_view kFreeze = "freeze";
constexpr std::string_view kFlip = "flip";
constexpr std::string_view kAbort = "abort";

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  // A request of up to 256 bytes is never answered in part.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw SqliteError(Status::from_errno(errno, "getrandom"));
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

Status check_entry(const Directory& directory, std::string_view entry) {
  if (const auto why = why_not_entry_id(entry)) {
    return {Code::refused, "entry id " + in_quotes(entry) + " " + std::string(*why)};
  }
  const auto bucket = bucket_of_entry_id(entry);
  if (bucket && *bucket >= directory.layout().buckets) {
    return {Code::refused, fmt::format("{}: the directory has {} buckets", in_quotes(entry),
                                       directory.layout().buckets)};
  }
  return {};
}

// What a step with this token committed.
struct Committed {
  std::string step;
  std::string entry;
  std::uint64_t version = 0;
};

std::optional<Committed> committed(Directory& directory, std::string_view token,
                                   std::string_view step) {
  SqliteStatement select = directory.db().prepare(
      "SELECT step, entry_id, version FROM directory_move_step WHERE token = ? AND step = ?");
  if (!select.bind(token, step).step()) return std::nullopt;
  return Committed{std::string(select.text(0)), std::string(select.text(1)), select.number(2)};
}

std::string past_of(std::string_view step) {
  return step == kFlip ? "flipped" : "aborted";
}

// What may be done about the entry next, as the end of a sentence.
std::string what_is_legal(const TenantRow& row, const std::optional<MoveRow>& move) {
  const std::string holder =
      move ? fmt::format("by {} or with its token", move->owner) : std::string();
  const std::string_view others =
      move && move->overdue() ? "; abort by anybody, since it is overdue" : "";
  if (move && row.epoch != move->epoch) {
    return fmt::format(
        "it was changed at version {}, by other means than a move, since its step at version {}; "
        "legal is: abort {}{}",
        row.epoch, move->epoch, holder, others);
  }
  if (move && move->step == "marked")
    return fmt::format("legal is: freeze or abort {}{}", holder, others);
  if (move) return fmt::format("legal is: flip or abort {}{}", holder, others);
  if (row.parts != 0) {
    return fmt::format("it is split: legal is: move its parts, 0 to {}, each by itself",
                       row.parts - 1);
  }
  if (row.state == "ACTIVE") return "legal is: mark";
  if (row.state == "DELETED") return "legal is: tenant create, which revives it on any shard";
  return "legal is: abort by anybody";
}

// A verb's transaction, who acts with which token, and what is there.
class Step {
 public:
  Step(Directory& directory, std::string_view step, std::string_view entry, const Mover& mover,
       std::string_view verb)
      : directory_(directory),
        step_(step),
        entry_(entry),
        who_(mover.who.empty() ? this_user() : mover.who),
        token_(mover.token) {
    change_.emplace(directory, verb, std::string_view(), who_);
    row_ = find_entry(directory, entry);
    fallback_ = fallback_shard(directory, entry);
    move_ = find_move(directory, entry);
  }

  const std::optional<TenantRow>& row() const noexcept { return row_; }
  const std::optional<MoveRow>& move() const noexcept { return move_; }
  const std::string& fallback() const noexcept { return fallback_; }
  const std::string& token() const noexcept { return token_; }
  const std::string& who() const noexcept { return who_; }

  // The answer if this very step was committed before with the token that was given, and still
  // holds: a freeze that somebody ended since is no freeze.
  std::optional<MoveStep> repeated() {
    if (token_.empty()) return std::nullopt;
    const auto before = committed(directory_, token_, step_);
    if (!before || before->entry != entry_) return std::nullopt;
    const bool closes = step_ == kFlip || step_ == kAbort;
    const bool open = move_ && move_->token == token_ && row_ && row_->epoch == move_->epoch;
    if (!closes && !open) return std::nullopt;
    return MoveStep{before->version, token_};
  }

  // Takes the open move's token where none was given; refused for those who may not act.
  Status hold() {
    if (!move_) return refusal(token_.empty() ? std::string() : fate_of_token());
    if (!token_.empty()) {
      return token_ == move_->token ? Status() : refusal(fate_of_token());
    }
    const bool may_abort = step_ == kAbort && move_->overdue();
    if (who_ != move_->owner && !may_abort) {
      return refusal(fmt::format("{} neither owns the move nor brought its token", who_));
    }
    token_ = move_->token;
    return {};
  }

  void begin_with(std::string token) { token_ = std::move(token); }

  Status refusal(const std::string& because = {}) const {
    std::string text = fmt::format("move {} of {} is refused: ", step_, in_quotes(entry_));
    if (!because.empty()) text += because + "; ";
    if (!row_ && fallback_.empty()) return nobody_answers();
    if (!row_) return {Code::conflict, text + "it has no entry of its own; legal is: mark"};
    text += fmt::format("it is {} on shard {} (epoch {})", row_->state, in_quotes(row_->shard),
                        row_->epoch);
    if (move_) {
      text += "; " + described(*move_);
    } else if (row_->state != "ACTIVE" && row_->state != "DELETED") {
      text += "; no verb of ours recorded its move";
    } else {
      text += " and is not being moved";
    }
    return {Code::conflict, text + "; " + what_is_legal(*row_, move_)};
  }

  // Records what was done and commits it.
  MoveStep commit() {
    if (!token_.empty()) {
      directory_.db()
          .prepare(
              "INSERT INTO directory_move_step (token, step, entry_id, version) "
              "SELECT ?, ?, ?, version FROM directory_version")
          .bind(token_, step_, entry_)
          .run();
    }
    try {
      return {change_->commit(), token_};
    } catch (const SqliteError& error) {
      change_.reset();
      if (token_.empty()) throw;
      return look_again(error);
    }
  }

 private:
  Status nobody_answers() const {
    if (const auto part = part_of_entry_id(entry_)) return no_such_part(*part);
    const std::string text = bucket_of_entry_id(entry_)
                                 ? entry_ + " has no shard: bucket assign gives it one"
                                 : "there is no tenant " + in_quotes(entry_);
    return {Code::absent, text};
  }

  Status no_such_part(const PartId& part) const {
    const auto tenant = find_entry(directory_, part.tenant);
    const std::string why =
        !tenant || tenant->parts == 0
            ? "is not split"
            : fmt::format("has parts 0 to {}, and no part {}", tenant->parts - 1, part.part);
    return {Code::absent, "tenant " + in_quotes(part.tenant) + " " + why};
  }

  // What became of a move whose token was given, if that is not the open one.
  std::string fate_of_token() const {
    for (const std::string_view end : {kFlip, kAbort}) {
      const auto closed = committed(directory_, token_, end);
      if (closed) {
        return fmt::format("the move of {} with this token was {} at version {}",
                           in_quotes(closed->entry), past_of(end), closed->version);
      }
    }
    const auto open = committed(directory_, token_, kMark);
    if (open) return fmt::format("this token is that of the move of {}", in_quotes(open->entry));
    return "no move has this token";
  }

  // After a COMMIT that failed, or was done and not answered.
  MoveStep look_again(const SqliteError& error) {
    const auto unknown = [&](const std::string& what) {
      return SqliteError({error.status().code(),
                          fmt::format("{}; {}: before anything else, repeat move {} {} with "
                                      "--token {}",
                                      error.status().message(), what, step_, entry_, token_)});
    };
    std::optional<Committed> done;
    try {
      done = committed(directory_, token_, step_);
    } catch (const SqliteError&) {
      throw unknown("whether it was committed is not known");
    }
    if (!done) throw unknown("it is not there when read again, but may have been committed");
    return {done->version, token_};
  }

  Directory& directory_;
  std::string step_;
  std::string entry_;
  std::string who_;
  std::string token_;
  std::optional<DirectoryChange> change_;
  std::optional<TenantRow> row_;
  std::string fallback_;
  std::optional<MoveRow> move_;
};

// Whether the entry was put on its way to `to`, from where it is or resolved to.
bool set_marked(Directory& directory, const std::optional<TenantRow>& row, std::string_view entry,
                std::string_view source, std::string_view to) {
  if (!row) {
    directory.db()
        .prepare(
            "INSERT INTO shard_directory (entry_id, shard_id, state, target_shard) "
            "VALUES (?, ?, 'MIGRATING', ?)")
        .bind(entry, source, to)
        .run();
    return true;
  }
  directory.db()
      .prepare(
          "UPDATE shard_directory SET state = 'MIGRATING', target_shard = ?2 "
          "WHERE entry_id = ?1 AND state = 'ACTIVE' AND epoch = ?3 AND shard_id = ?4")
      .bind(entry, to, row->epoch, source)
      .run();
  return directory.db().changes() == 1;
}

void insert_move(Directory& directory, const Step& step, std::string_view entry,
                 std::string_view source, std::string_view to, std::chrono::milliseconds deadline) {
  const auto count = deadline.count();
  directory.db()
      .prepare(
          "INSERT INTO directory_move (entry_id, source, target, step, token, owner, started_at, "
          "deadline, epoch) SELECT ?1, ?2, ?3, 'marked', ?4, ?5, strftime('%Y-%m-%dT%H:%M:%fZ', "
          "'now'), strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?6), version FROM directory_version")
      .bind(entry, source, to, step.token(), step.who(),
            fmt::format("+{}.{:03} seconds", count / 1'000, count % 1'000))
      .run();
}

// A repeat of a mark, or why there cannot be one while a move is open or under this token.
Result<MoveStep> mark_again(Step& step, std::string_view to) {
  const auto before = step.repeated();
  if (before && step.move()->target == to) return *before;
  if (before)
    return step.refusal(fmt::format("this token's move does not go to {}", in_quotes(to)));
  if (step.token().empty()) return step.refusal();
  if (Status status = step.hold(); !status.ok()) return status;
  return step.refusal("a token is given to repeat a mark, and drawn for a new one");
}

// No step of ours moves an entry that has gone on without the move.
Result<MoveStep> abort_as_it_is(Directory& directory, Step& step, std::string_view entry) {
  if (step.row() && (step.row()->state == "MIGRATING" || step.row()->state == "FROZEN")) {
    directory.db()
        .prepare(
            "UPDATE shard_directory SET state = 'ACTIVE', target_shard = NULL WHERE entry_id = ?1 "
            "AND state = ?2 AND epoch = ?3 AND (?4 = '' OR EXISTS (SELECT 1 FROM directory_move "
            "WHERE entry_id = ?1 AND token = ?4))")
        .bind(entry, step.row()->state, step.row()->epoch, step.token())
        .run();
    if (directory.db().changes() != 1) return step.refusal();
  }
  directory.db()
      .prepare("DELETE FROM directory_move WHERE entry_id = ? AND token = ?")
      .bind(entry, step.token())
      .run();
  return step.commit();
}

bool moves_unrecorded(const Step& step) {
  return !step.move() && step.row() && step.row()->state != "ACTIVE" &&
         step.row()->state != "DELETED";
}

}  // namespace

Result<MoveStep> mark_move(Directory& directory, std::string_view entry, std::string_view to,
                           std::chrono::milliseconds deadline, const Mover& mover) {
  if (Status status = check_entry(directory, entry); !status.ok()) return status;
  Step step(directory, kMark, entry, mover, "move mark");
  if (step.move() || !step.token().empty()) return mark_again(step, to);
  if (Status status = check_at_rest(directory, entry); !status.ok()) {
    return step.row() ? step.refusal() : std::move(status);
  }
  const std::string source = step.row() ? step.row()->shard : step.fallback();
  if (source.empty()) return step.refusal();
  if (step.row() && (step.row()->state == "DELETED" || step.row()->parts != 0)) {
    return step.refusal();
  }
  SqliteStatement known = directory.db().prepare("SELECT 1 FROM shard_topology WHERE shard_id = ?");
  if (!known.bind(to).step()) return Status(Code::refused, "there is no shard " + in_quotes(to));
  if (source == to) {
    return Status(Code::refused,
                  fmt::format("{} is on shard {} already", in_quotes(entry), in_quotes(to)));
  }
  if (Status status = check_region(directory, entry, to); !status.ok()) return status;
  step.begin_with(random_token());
  if (!set_marked(directory, step.row(), entry, source, to)) return step.refusal();
  insert_move(directory, step, entry, source, to, deadline);
  return step.commit();
}

Result<MoveStep> freeze_move(Directory& directory, std::string_view entry, const Mover& mover) {
  if (Status status = check_entry(directory, entry); !status.ok()) return status;
  Step step(directory, kFreeze, entry, mover, "move freeze");
  if (const auto before = step.repeated()) return *before;
  if (Status status = step.hold(); !status.ok()) return status;
  if (const auto before = step.repeated()) return *before;
  directory.db()
      .prepare(
          "UPDATE shard_directory SET state = 'FROZEN' WHERE entry_id = ?1 AND state = 'MIGRATING' "
          "AND EXISTS (SELECT 1 FROM directory_move AS m WHERE m.entry_id = ?1 AND m.token = ?2 "
          "AND m.step = 'marked' AND m.epoch = shard_directory.epoch)")
      .bind(entry, step.token())
      .run();
  if (directory.db().changes() != 1) return step.refusal();
  directory.db()
      .prepare(
          "UPDATE directory_move SET step = 'frozen', frozen_at = strftime('%Y-%m-%dT%H:%M:%fZ', "
          "'now'), epoch = (SELECT version FROM directory_version) WHERE entry_id = ?")
      .bind(entry)
      .run();
  return step.commit();
}

Result<MoveStep> flip_move(Directory& directory, std::string_view entry, const Mover& mover) {
  if (Status status = check_entry(directory, entry); !status.ok()) return status;
  Step step(directory, kFlip, entry, mover, "move flip");
  if (const auto before = step.repeated()) return *before;
  if (Status status = step.hold(); !status.ok()) return status;
  directory.db()
      .prepare(
          "UPDATE shard_directory SET shard_id = target_shard, state = 'ACTIVE', target_shard = "
          "NULL WHERE entry_id = ?1 AND state = 'FROZEN' AND EXISTS (SELECT 1 FROM directory_move "
          "AS m WHERE m.entry_id = ?1 AND m.token = ?2 AND m.step = 'frozen' "
          "AND m.epoch = shard_directory.epoch AND m.target = shard_directory.target_shard)")
      .bind(entry, step.token())
      .run();
  if (directory.db().changes() != 1) return step.refusal();
  directory.db().prepare("DELETE FROM directory_move WHERE entry_id = ?").bind(entry).run();
  return step.commit();
}

Result<MoveStep> abort_move(Directory& directory, std::string_view entry, const Mover& mover) {
  if (Status status = check_entry(directory, entry); !status.ok()) return status;
  Step step(directory, kAbort, entry, mover, "move abort");
  if (const auto before = step.repeated()) return *before;
  if (step.token().empty() && moves_unrecorded(step)) return abort_as_it_is(directory, step, entry);
  if (Status status = step.hold(); !status.ok()) return status;
  return abort_as_it_is(directory, step, entry);
}

std::vector<MoveRow> list_moves(Directory& directory) {
  SqliteStatement select = directory.db().prepare(
      fmt::format("SELECT {} FROM directory_move ORDER BY deadline, entry_id", kMoveColumns));
  std::vector<MoveRow> moves;
  while (select.step()) moves.push_back(move_row_of(select));
  return moves;
}

Reaped reap_moves(Directory& directory, std::string_view who) {
  Reaped reaped;
  for (const MoveRow& seen : list_moves(directory)) {
    if (!seen.overdue()) continue;
    Step step(directory, kAbort, seen.entry, {std::string(who), seen.token}, "move reap");
    // Flipped, aborted or marked anew since the list was read.
    if (!step.move() || step.move()->token != seen.token) continue;
    if (abort_as_it_is(directory, step, seen.entry).ok()) reaped.moves.push_back(*step.move());
  }
  reaped.version = directory.version();
  return reaped;
}

}  // namespace fingerpost
