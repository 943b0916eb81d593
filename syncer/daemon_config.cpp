#include "syncer/daemon_config.h"

#include <toml++/toml.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

namespace fingerpost {
namespace {

// As the setting's own parser reads it; nullopt: TOML's type is not one that this setting takes.
std::optional<std::string> text_of(const toml::node& node, Setting::Kind kind) {
  const bool takes_text = kind != Setting::Kind::number;
  const bool takes_number = kind != Setting::Kind::text;
  if (const auto* text = node.as_string(); text && takes_text) return text->get();
  if (const auto* number = node.as_integer(); number && takes_number) {
    return std::to_string(number->get());
  }
  return std::nullopt;
}

std::string_view wanted_by(Setting::Kind kind) {
  switch (kind) {
    case Setting::Kind::text:
      return "a string";
    case Setting::Kind::number:
      return "a whole number";
    case Setting::Kind::duration:
      break;
  }
  return "a duration: a string as \"250ms\", \"5s\", \"10m\", \"24h\", or a number of seconds";
}

void take(const std::string& path, const toml::table& table, DaemonConfig& config) {
  std::multimap<toml::source_index, std::string> faults;  // by line, which a table's order is not
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const toml::source_index line = key.source().begin.line;
    const std::string where = path + ":" + std::to_string(line) + ": " + name;
    const Setting* setting = find_setting(name);
    if (!setting) {
      faults.emplace(line, where + ": there is no such key");
    } else if (const auto text = text_of(node, setting->kind)) {
      config.values[name] = {*text, where};
    } else {
      faults.emplace(line, where + ": must be " + std::string(wanted_by(setting->kind)));
    }
  }
  for (auto& [line, fault] : faults) config.faults.push_back(std::move(fault));
}

}  // namespace

DaemonConfig read_daemon_config(const std::string& path) {
  DaemonConfig config;
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {  // which opens, and reads as empty
    config.faults.push_back("cannot read " + path + ": it is a folder");
    return config;
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    config.faults.push_back("cannot read " + path + ": " + std::generic_category().message(errno));
    return config;
  }
  try {
    take(path, toml::parse(text.str(), path), config);
  } catch (const toml::parse_error& error) {
    config.faults.push_back(path + ":" + std::to_string(error.source().begin.line) + ": " +
                            std::string(error.description()));
  }
  return config;
}

}  // namespace fingerpost
