// What the verbs of the command line share: where the directory is, how to answer, how it went.
//
// A family of verbs is one file, cli_<noun>.cpp, that offers register_<noun>_verbs; main.cpp lists
// them. A verb prints its answer on stdout and nothing else there; what went wrong is one line on
// stderr, an object with --json.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "shm/status.h"
#include "syncer/exit_status.h"
#include "tools/directory.h"

namespace fingerpost {

struct Context {
  std::string directory_url;  // --directory, else FINGERPOST_DIRECTORY
  bool json = false;
  ExitStatus exit_status = ExitStatus::done;  // the worst so far

  void answer(ExitStatus status) {
    if (status > exit_status) exit_status = status;
  }
};

// A verb below `parent`, with --json. `example` ends its --help.
CLI::App* add_verb(CLI::App& parent, const std::string& name, const std::string& description,
                   const std::string& example, Context& context);
// The same with --directory.
CLI::App* add_directory_verb(CLI::App& parent, const std::string& name,
                             const std::string& description, const std::string& example,
                             Context& context);

// A check of what is given as a number, before CLI11 wraps one below zero round to a large one:
// decimal digits, of a value from `low` to `high`.
CLI::Validator whole_number(std::uint64_t low, std::uint64_t high);

// An option that takes "15m"; what `time` holds is the default. `default_text`: that as typed.
CLI::Option* add_duration_option(CLI::App& verb, const std::string& name,
                                 std::chrono::milliseconds& time, const std::string& description,
                                 const std::string& default_text);

// Runs a verb's body. What it returns or throws becomes the exit status and the line on stderr.
void run_verb(Context& context, const std::function<Status()>& body);
// The same with the directory opened.
void run_directory_verb(Context& context, const std::function<Status(Directory&)>& body);

// The directory that the command line or the environment names.
Result<std::string> directory_url(const Context& context);

// One line on stderr, not yet an answer.
void report_error(const Context& context, const Status& status);

// A definite no: that line, and exit status 1.
void answer_no(Context& context, const std::string& message);

// One JSON object as a line on stdout. Bytes that are not UTF-8 are replaced.
void print_json(const nlohmann::json& object);

// Null where there is nothing to say.
nlohmann::json text_or_null(std::string_view text);

// "version 123", or {"version":123}: the end of every verb that changes something.
void print_version(const Context& context, std::uint64_t version);

// Prints the version; a thing that is not there is a definite no, unlike a directory that is not
// there; any other Status is handed back.
Status answer_version(Context& context, const Result<std::uint64_t>& version);

}  // namespace fingerpost
