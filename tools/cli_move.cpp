// fingerpost move mark|freeze|flip|abort|list|reap
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/cli_verbs.h"
#include "tools/directory_moves.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

struct Flags {
  std::string id;
  std::optional<std::uint32_t> part;
  std::string to;
  std::chrono::milliseconds deadline = std::chrono::minutes(15);
  Mover mover;

  std::string entry() const { return part ? part_entry_id(*part, id) : id; }
};

using StepFunction = Result<MoveStep> (*)(Directory&, std::string_view, const Mover&);

std::string with_warning(const std::string& text) {
  return text + ". " + std::string(kMoveWarning);
}

CLI::App* add_step(CLI::App& move, const std::string& name, const std::string& description,
                   const std::string& example, Context& context, Flags& flags) {
  CLI::App* verb = add_directory_verb(move, name, with_warning(description), example, context);
  verb->add_option("ID", flags.id, "The tenant, or bucket:N")->required();
  verb->add_option("--part", flags.part, "The part of a split tenant")
      ->type_name("K")
      ->check(whole_number(0, UINT32_MAX));
  verb->add_option("--as", flags.mover.who, "Who acts (else user@host)")->type_name("WHO");
  verb->add_option("--token", flags.mover.token, "The token that mark printed")->type_name("T");
  return verb;
}

Status answer_step(Context& context, const Result<MoveStep>& step, bool tell_token) {
  if (!step) {
    if (step.status().code() != Code::absent) return step.status();
    answer_no(context, step.status().message());
    return {};
  }
  if (!tell_token) {
    print_version(context, step->version);
  } else if (context.json) {
    print_json({{"token", step->token}, {"version", step->version}});
  } else {
    std::cout << "token " << step->token << '\n';
    print_version(context, step->version);
  }
  return {};
}

void register_mark(CLI::App& move, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_step(
      move, "mark",
      "Begin a move: MIGRATING from now on, still served where it is. Prints the token that the "
      "later steps need from anybody but the owner. A repeat with that token is done already",
      "fingerpost move mark acme --to s2 --deadline 15m\n  fingerpost move mark acme --part 3 --to "
      "s2",
      context, *flags);
  verb->add_option("--to", flags->to, "The shard to move to")->type_name("NAME")->required();
  add_duration_option(*verb, "--deadline", flags->deadline, "From then on anybody may abort",
                      "15m");
  verb->callback([flags, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return answer_step(
          context, mark_move(directory, flags->entry(), flags->to, flags->deadline, flags->mover),
          true);
    });
  });
}

void register_step(CLI::App& move, Context& context, const std::string& name,
                   const std::string& description, StepFunction function) {
  auto flags = std::make_shared<Flags>();
  CLI::App* verb = add_step(
      move, name, description,
      "fingerpost move " + name + " acme\n  fingerpost move " + name + " bucket:7 --token 5f0c…",
      context, *flags);
  verb->callback([flags, function, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      return answer_step(context, function(directory, flags->entry(), flags->mover), false);
    });
  });
}

// Without the token: who may read a list need not hold the moves in it.
nlohmann::json as_json(const MoveRow& move) {
  return {{"id", move.entry},
          {"step", move.step},
          {"from", move.source},
          {"to", move.target},
          {"owner", move.owner},
          {"since", move.started_at},
          {"frozen_at", text_or_null(move.frozen_at)},
          {"deadline", move.deadline},
          {"overdue", move.overdue()},
          {"epoch", move.epoch}};
}

std::string as_line(const MoveRow& move) {
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", move.entry, move.step, move.source,
                     move.target, move.owner, move.started_at, move.deadline,
                     move.overdue() ? "overdue" : "");
}

void register_list(CLI::App& move, Context& context) {
  CLI::App* verb = add_directory_verb(
      move, "list",
      with_warning("List the open moves: id, step, from, to, the token's owner, since when, "
                   "deadline, overdue"),
      "fingerpost move list --json", context);
  verb->callback([&context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      for (const MoveRow& row : list_moves(directory)) {
        if (context.json) {
          print_json(as_json(row));
        } else {
          std::cout << as_line(row);
        }
      }
      return {};
    });
  });
}

void print_reaped(const Context& context, const Reaped& reaped) {
  if (context.json) {
    nlohmann::json aborted = nlohmann::json::array();
    for (const MoveRow& row : reaped.moves) aborted.push_back(as_json(row));
    print_json({{"aborted", aborted}, {"version", reaped.version}});
    return;
  }
  for (const MoveRow& row : reaped.moves) {
    std::cout << fmt::format("aborted {}: {}\n", in_quotes(row.entry), described(row));
  }
  if (reaped.moves.empty()) std::cout << "no move is overdue\n";
  print_version(context, reaped.version);
}

void register_reap(CLI::App& move, Context& context) {
  auto who = std::make_shared<std::string>();
  CLI::App* verb = add_directory_verb(
      move, "reap",
      with_warning("Abort every move that is past its deadline, by the database's clock"),
      "fingerpost move reap", context);
  verb->add_option("--as", *who, "Who acts (else user@host)")->type_name("WHO");
  verb->callback([who, &context] {
    run_directory_verb(context, [&](Directory& directory) -> Status {
      print_reaped(context, reap_moves(directory, *who));
      return {};
    });
  });
}

}  // namespace

void register_move_verbs(CLI::App& app, Context& context) {
  CLI::App* move =
      app.add_subcommand("move", with_warning("Move a tenant, a bucket or a part of a split tenant "
                                              "to another shard: mark, freeze, flip"));
  move->require_subcommand(1);
  register_mark(*move, context);
  register_step(*move, context, "freeze",
                "After mark: FROZEN, writes are refused until the flip or the abort", freeze_move);
  register_step(*move, context, "flip", "After freeze: ACTIVE on the shard that mark named",
                flip_move);
  register_step(*move, context, "abort",
                "ACTIVE again where it was. By the token's holder; past the deadline by anybody",
                abort_move);
  register_list(*move, context);
  register_reap(*move, context);
}

}  // namespace fingerpost
