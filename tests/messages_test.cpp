// README's tables of messages against the sources: nothing the daemon warns of is missing there,
// and nothing stands there that nobody says.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kValue = "…";

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string sources_of(const std::vector<std::string>& folders) {
  std::string all;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::directory_iterator(fs::path(FINGERPOST_SOURCE_DIR) / folder)) {
      const fs::path extension = entry.path().extension();
      if (extension == ".cpp" || extension == ".h") all += text_of(entry.path());
    }
  }
  return all;
}

// The literal that begins at `at`, with those that the compiler would join to it; `at` goes behind.
std::string literal_at(const std::string& code, std::size_t& at) {
  std::string text;
  while (at < code.size() && code[at] == '"') {
    for (++at; code[at] != '"'; ++at) {
      if (code[at] == '\\') ++at;
      text += code[at];
    }
    const std::size_t next = code.find_first_not_of(" \n", at + 1);
    at = next == std::string::npos ? code.size() : next;
  }
  return text;
}

struct Argument {
  std::string code;  // without its literals
  std::vector<std::string> literals;
};

// Of the call whose parenthesis opens before `at`.
std::vector<Argument> arguments_at(const std::string& code, std::size_t at) {
  std::vector<Argument> arguments(1);
  for (int depth = 1; at < code.size();) {
    if (code[at] == '"') {
      arguments.back().literals.push_back(literal_at(code, at));
      continue;
    }
    depth += (code[at] == '(' || code[at] == '{') - (code[at] == ')' || code[at] == '}');
    if (depth == 0) break;
    if (code[at] == ',' && depth == 1) {
      arguments.emplace_back();
    } else if (code[at] != ' ' && code[at] != '\n') {
      arguments.back().code += code[at];
    }
    ++at;
  }
  return arguments;
}

// What each call that logs a warning or an error says: its last argument.
std::vector<Argument> warnings_of(const std::string& code) {
  std::vector<Argument> warnings;
  for (const std::string_view call : {"warning(", "error(", "limited("}) {
    for (std::size_t at = code.find(call); at != std::string::npos; at = code.find(call, at + 1)) {
      const std::string before = code.substr(at < 5 ? 0 : at - 5, at < 5 ? at : 5);
      if (!before.ends_with("log.") && !before.ends_with("log_.") && !before.ends_with("og().")) {
        continue;
      }
      std::vector<Argument> arguments = arguments_at(code, at + call.size());
      if (arguments.front().code != "Log::Level::info")
        warnings.push_back(std::move(arguments.back()));
    }
  }
  return warnings;
}

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

std::string trimmed(const std::string& text) {
  const auto begin = std::find_if(text.begin(), text.end(), is_letter);
  const auto end = std::find_if(text.rbegin(), std::make_reverse_iterator(begin), is_letter).base();
  return {begin, end};
}

// Worth looking for: more than a word between two values.
bool is_telling(const std::string& text) {
  return std::count_if(text.begin(), text.end(), is_letter) >= 6;
}

std::string chapter(const std::string& readme) {
  const std::size_t begin = readme.find("\n### Messages\n");
  REQUIRE(begin != std::string::npos);
  return readme.substr(begin, readme.find("\n## ", begin) - begin);
}

// In the first columns of the chapter's tables, between backquotes.
std::vector<std::string> quoted_messages(const std::string& text) {
  std::vector<std::string> messages;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(2, line.find(" | ", 2) - 2);
    for (std::size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
      const std::size_t end = cell.find('`', at + 1);
      messages.push_back(cell.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  return messages;
}

std::vector<std::string> between_values(const std::string& message) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at <= message.size();) {
    const std::size_t end = std::min(message.find(kValue, at), message.size());
    pieces.push_back(message.substr(at, end - at));
    at = end + kValue.size();
  }
  return pieces;
}

std::vector<std::string> literals_of(const std::string& code) {
  std::vector<std::string> literals;
  for (std::size_t at = code.find('"'); at < code.size(); at = code.find('"', at)) {
    if (at > 0 && code[at - 1] == '\'') {
      ++at;  // the character
    } else {
      literals.push_back(literal_at(code, at));
    }
  }
  return literals;
}

}  // namespace

TEST_CASE("every warning and error of the daemon stands in README with what to do") {
  const std::string text = chapter(text_of(fs::path(FINGERPOST_SOURCE_DIR) / "README.md"));
  const std::vector<Argument> warnings = warnings_of(sources_of({"syncer"}));
  REQUIRE(warnings.size() > 25);
  std::set<std::string> without_words;
  for (const Argument& warning : warnings) {
    bool has_words = false;
    for (const std::string& literal : warning.literals) {
      const std::string words = trimmed(literal);
      if (!is_telling(words)) continue;
      has_words = true;
      CHECK_MESSAGE(text.find(words) != std::string::npos, words);
    }
    if (!has_words) without_words.insert(warning.code);
  }
  // These say only what they were told, which is in README by the words of whoever made it: who has
  // the lock, why the segment's owner cannot be put back, what is wrong with an approval, why a
  // start is refused, which socket, what was thrown.
  CHECK(without_words == std::set<std::string>{"held.message()", "had.status().message()",
                                               "given.status().message()", "status.message()",
                                               "manager.status().message()", "error.what()"});
}

TEST_CASE("every message in README's tables is one that somebody says") {
  const std::string text = chapter(text_of(fs::path(FINGERPOST_SOURCE_DIR) / "README.md"));
  const auto literals = literals_of(sources_of({"shm", "reader", "syncer", "tools"}));
  const auto is_said = [&](const std::string& piece) {
    return std::any_of(literals.begin(), literals.end(), [&](const std::string& literal) {
      return literal.find(piece) != std::string::npos;
    });
  };
  const auto messages = quoted_messages(text);
  REQUIRE(messages.size() > 50);
  for (const std::string& message : messages) {
    CAPTURE(message);
    for (const std::string& piece : between_values(message)) {
      if (!is_telling(piece)) continue;
      CHECK_MESSAGE(is_said(trimmed(piece)), piece);
    }
  }
  CHECK_FALSE(is_said("the moon is full"));
}

TEST_CASE("a message that is left out, or made up, would be noticed") {
  const auto found = warnings_of(
      "log_.limited(Log::Level::warning, \"cause\",\n  \"one \" + f(a, b) + \" and\"\n  \" two\");"
      "log.info(\"no\"); my.error(\"no\"); log_.limited(Log::Level::info, \"c\", \"no\");");
  REQUIRE(found.size() == 1);
  CHECK(found[0].literals == std::vector<std::string>{"one ", " and two"});
  CHECK(quoted_messages("| `a …: b` · `c` | d `e` |\n| x | `y` |\n") ==
        std::vector<std::string>{"a …: b", "c"});
  CHECK(between_values("a …: b…") == std::vector<std::string>{"a ", ": b", ""});
  CHECK(literals_of("f('\"', \"a\\\"b\" \"c\")") == std::vector<std::string>{"a\"bc"});
}
