#include "tools/cli_context.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "shm/number_text.h"
#include "syncer/duration.h"
#include "tools/text.h"

namespace fingerpost {

CLI::App* add_verb(CLI::App& parent, const std::string& name, const std::string& description,
                   const std::string& example, Context& context) {
  CLI::App* verb = parent.add_subcommand(name, description);
  verb->add_flag("--json", context.json, "Answer in JSON, one object a line");
  verb->footer("Example:\n  " + example);
  return verb;
}

CLI::App* add_directory_verb(CLI::App& parent, const std::string& name,
                             const std::string& description, const std::string& example,
                             Context& context) {
  CLI::App* verb = add_verb(parent, name, description, example, context);
  verb->add_option("--directory", context.directory_url,
                   "The directory: sqlite:PATH or PATH (else $FINGERPOST_DIRECTORY)")
      ->type_name("URL");
  return verb;
}

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  return {[low, high](const std::string& text) -> std::string {
            std::uint64_t number = 0;
            const char* const behind = text.data() + text.size();
            const auto [end, error] = std::from_chars(text.data(), behind, number);
            if (error == std::errc{} && end == behind && number >= low && number <= high) return {};
            return fmt::format("{} is no whole number from {} to {}", in_quotes(text), grouped(low),
                               grouped(high));
          },
          ""};
}

CLI::Option* add_duration_option(CLI::App& verb, const std::string& name,
                                 std::chrono::milliseconds& time, const std::string& description,
                                 const std::string& default_text) {
  return verb
      .add_option_function<std::string>(
          name,
          [&time, name](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) {
              throw CLI::ValidationError(
                  name, in_quotes(text) + " is no duration: a number and ms, s, m, h or d");
            }
            time = *parsed;
          },
          fmt::format("{} (default {})", description, default_text))
      ->type_name("DURATION");
}

void run_verb(Context& context, const std::function<Status()>& body) {
  Status status;
  try {
    status = body();
  } catch (const SqliteError& error) {
    status = error.status();
  } catch (const std::exception& error) {
    status = {Code::internal, error.what()};
  }
  if (status.ok()) return;
  report_error(context, status);
  context.answer(exit_status_of(status.code()));
}

void run_directory_verb(Context& context, const std::function<Status(Directory&)>& body) {
  run_verb(context, [&]() -> Status {
    const Result<std::string> url = directory_url(context);
    if (!url) {
      report_error(context, url.status());
      context.answer(ExitStatus::usage);
      return {};
    }
    const Result<std::unique_ptr<Directory>> directory = Directory::open(*url);
    if (!directory) return directory.status();
    return body(**directory);
  });
}

Result<std::string> directory_url(const Context& context) {
  if (!context.directory_url.empty()) return context.directory_url;
  const char* named = std::getenv("FINGERPOST_DIRECTORY");
  if (named != nullptr && *named != '\0') return std::string(named);
  return Status(Code::refused, "no directory: give --directory URL or set FINGERPOST_DIRECTORY");
}

void report_error(const Context& context, const Status& status) {
  std::cout.flush();
  if (!context.json) {
    std::cerr << "fingerpost: " << status.message() << '\n';
    return;
  }
  const nlohmann::json object = {{"error", status.message()}, {"code", to_string(status.code())}};
  std::cerr << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void answer_no(Context& context, const std::string& message) {
  report_error(context, {Code::absent, message});
  context.answer(ExitStatus::no);
}

void print_json(const nlohmann::json& object) {
  std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

nlohmann::json text_or_null(std::string_view text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

void print_version(const Context& context, std::uint64_t version) {
  if (context.json) {
    print_json({{"version", version}});
  } else {
    std::cout << "version " << version << '\n';
  }
}

Status answer_version(Context& context, const Result<std::uint64_t>& version) {
  if (version) {
    print_version(context, *version);
  } else if (version.status().code() == Code::absent) {
    answer_no(context, version.status().message());
  } else {
    return version.status();
  }
  return {};
}

}  // namespace fingerpost
