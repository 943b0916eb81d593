#include "tools/import_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kNoObject = "is no JSON object";

// Gives out `begun` before what `read` gives.
CsvReader::Read continuing(std::string begun, CsvReader::Read read) {
  return [begun = std::move(begun), at = std::size_t{0}, read = std::move(read)](
             char* bytes, std::size_t size) mutable -> Result<std::size_t> {
    if (at == begun.size()) return read(bytes, size);
    const std::size_t count = std::min(size, begun.size() - at);
    std::memcpy(bytes, begun.data() + at, count);
    at += count;
    return count;
  };
}

// "" for null. Nothing for what is neither text nor null.
std::optional<std::string> text_of(const nlohmann::json& value) {
  if (value.is_null()) return std::string();
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

}  // namespace

class ImportReader::Format {
 public:
  virtual ~Format() = default;
  virtual Status begin() = 0;
  virtual Result<bool> next(ImportRecord& record) = 0;
  virtual std::uint64_t line() const noexcept = 0;
};

class ImportReader::Csv final : public Format {
 public:
  explicit Csv(CsvReader::Read read) : csv_(std::move(read)) {}

  Status begin() override {
    const Result<bool> more = csv_.next();
    if (!more) return at_line(more.status());
    if (!*more) {
      return {Code::refused, "the input is empty: its first record must name the columns"};
    }
    return read_header(csv_.fields());
  }

  Result<bool> next(ImportRecord& record) override {
    const Result<bool> more = csv_.next();
    if (!more || !*more) return more;
    const std::vector<std::string>& fields = csv_.fields();
    if (fields.size() != count_) {
      record.fault = fmt::format("{} fields; the header names {} columns", fields.size(), count_);
      return true;
    }
    const auto field = [&](const std::optional<std::size_t>& column) {
      return column ? fields[*column] : std::string();
    };
    record.kind = field(kind_);
    if (record.kind.empty()) record.kind = "entry";
    record.id = field(id_);
    record.shard = field(shard_);
    record.state = field(state_);
    record.target = field(target_);
    if (const std::string details = field(details_); !details.empty()) {
      record.details = nlohmann::json::parse(details, nullptr, false);
      if (!record.details.is_object()) record.fault = fmt::format("details {}", kNoObject);
    }
    return true;
  }

  std::uint64_t line() const noexcept override { return csv_.line(); }

 private:
  using Column = std::optional<std::size_t>;

  Status read_header(const std::vector<std::string>& names) {
    count_ = names.size();
    Column epoch;
    Column updated_at;
    const std::pair<std::string_view, Column*> known[] = {
        {"kind", &kind_},   {"entry_id", &id_},         {"shard_id", &shard_},
        {"state", &state_}, {"target_shard", &target_}, {"details", &details_},
        {"epoch", &epoch},  {"updated_at", &updated_at}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto* found = std::find_if(std::begin(known), std::end(known), [&](const auto& column) {
        return column.first == names[i];
      });
      if (found == std::end(known)) {
        return {Code::refused,
                "line 1: unknown column " + in_quotes(names[i]) +
                    "; known are entry_id, shard_id, state, target_shard, kind, details (and "
                    "epoch, updated_at, which are passed over)"};
      }
      if (found->second->has_value()) {
        return {Code::refused, "line 1: column " + in_quotes(names[i]) + " is there twice"};
      }
      *found->second = i;
    }
    for (const auto& [column, name] : {std::pair(id_, "entry_id"), std::pair(shard_, "shard_id")}) {
      if (!column) {
        return {Code::refused, fmt::format("line 1: the first record must name a column {}", name)};
      }
    }
    return {};
  }

  Status at_line(const Status& status) const {
    if (status.code() != Code::refused) return status;
    return {status.code(), fmt::format("line {}: {}", csv_.line(), status.message())};
  }

  CsvReader csv_;
  std::size_t count_ = 0;
  Column kind_;
  Column id_;
  Column shard_;
  Column state_;
  Column target_;
  Column details_;
};

class ImportReader::JsonLines final : public Format {
 public:
  explicit JsonLines(CsvReader::Read read) : read_(std::move(read)) {}

  Status begin() override { return {}; }

  Result<bool> next(ImportRecord& record) override {
    std::string text;
    const Result<bool> more = next_line(text);
    if (!more || !*more) return more;
    record.details = nlohmann::json::parse(text, nullptr, false);
    if (!record.details.is_object()) {
      record.fault = kNoObject;
      return true;
    }
    record.kind = "entry";
    const std::pair<const char*, std::string*> known[] = {{"kind", &record.kind},
                                                          {"entry_id", &record.id},
                                                          {"shard_id", &record.shard},
                                                          {"state", &record.state},
                                                          {"target_shard", &record.target}};
    for (const auto& [name, field] : known) {
      const auto found = record.details.find(name);
      if (found == record.details.end()) continue;
      auto value = text_of(*found);
      if (!value) {
        record.fault = fmt::format("{} is not text", name);
        return true;
      }
      *field = *std::move(value);
      record.details.erase(found);
    }
    record.details.erase("epoch");
    record.details.erase("updated_at");
    return true;
  }

  std::uint64_t line() const noexcept override { return line_; }

 private:
  // The next line that is not blank, without its end.
  Result<bool> next_line(std::string& text) {
    for (;;) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end == std::string::npos && !ended_) {
        if (buffer_.size() - at_ > kJsonLineBytesMax) {
          ++line_;
          return Status(Code::refused, fmt::format("is longer than {} bytes", kJsonLineBytesMax));
        }
        if (Status status = fill(); !status.ok()) return status;
        continue;
      }
      if (end == std::string::npos && at_ == buffer_.size()) return false;
      text = buffer_.substr(at_, end == std::string::npos ? end : end - at_);
      at_ = end == std::string::npos ? buffer_.size() : end + 1;
      ++line_;
      if (text.find_first_not_of(" \t\r") != std::string::npos) return true;
    }
  }

  Status fill() {
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t before = buffer_.size();
    buffer_.resize(before + kReadBytes);
    const Result<std::size_t> got = read_(buffer_.data() + before, kReadBytes);
    buffer_.resize(before + (got ? *got : 0));
    if (!got) return got.status();
    ended_ = *got == 0;
    return {};
  }

  static constexpr std::size_t kReadBytes = 262'144;

  CsvReader::Read read_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::uint64_t line_ = 0;
};

ImportReader::ImportReader(CsvReader::Read read) : read_(std::move(read)) {}
ImportReader::~ImportReader() = default;

Status ImportReader::begin() {
  std::string begun(kByteOrderMark.size() + 1, '\0');
  std::size_t filled = 0;
  while (filled < begun.size()) {
    const Result<std::size_t> got = read_(begun.data() + filled, begun.size() - filled);
    if (!got) return got.status();
    if (*got == 0) break;
    filled += *got;
  }
  begun.resize(filled);
  const bool marked = begun.starts_with(kByteOrderMark);
  const bool json = begun.substr(marked ? kByteOrderMark.size() : 0).starts_with('{');
  if (json && marked) begun.erase(0, kByteOrderMark.size());
  CsvReader::Read whole = continuing(std::move(begun), std::move(read_));
  if (json) {
    format_ = std::make_unique<JsonLines>(std::move(whole));
  } else {
    format_ = std::make_unique<Csv>(std::move(whole));
  }
  return format_->begin();
}

Result<bool> ImportReader::next(ImportRecord& record) {
  record = {};
  return format_->next(record);
}

std::uint64_t ImportReader::line() const noexcept {
  return format_ == nullptr ? 0 : format_->line();
}

}  // namespace fingerpost
