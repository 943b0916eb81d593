#include "tools/directory_export.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/csv_reader.h"
#include "tools/directory_entry.h"
#include "tools/directory_init.h"
#include "tools/directory_pins.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

using Json = nlohmann::ordered_json;

struct ExportRow {
  std::string_view kind;
  std::string_view id;
  std::string_view shard;
  const TenantRow* entry = nullptr;  // of kind "entry"
  Json details = Json::object();     // of all others
};

std::string as_json_line(const ExportRow& row) {
  Json object = {{"kind", row.kind}};
  if (!row.id.empty()) object["entry_id"] = row.id;
  if (!row.shard.empty()) object["shard_id"] = row.shard;
  if (row.entry != nullptr) {
    object["state"] = row.entry->state;
    object["target_shard"] = row.entry->target.empty() ? Json() : Json(row.entry->target);
    object["epoch"] = row.entry->epoch;
    object["updated_at"] = row.entry->updated_at;
  }
  object.update(row.details);
  return object.dump() + "\n";
}

// Quoted where it must be.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !text.starts_with(' ') &&
      !text.ends_with(' ')) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

constexpr std::string_view kCsvHeader =
    "kind,entry_id,shard_id,state,target_shard,epoch,updated_at,details\n";

std::string as_csv(const ExportRow& row) {
  const std::string start =
      fmt::format("{},{},{},", row.kind, csv_field(row.id), csv_field(row.shard));
  if (row.entry == nullptr) return start + ",,,," + csv_field(row.details.dump()) + "\n";
  return start + fmt::format("{},{},{},{},\n", row.entry->state, csv_field(row.entry->target),
                             row.entry->epoch, row.entry->updated_at);
}

class Export {
 public:
  Export(Directory& directory, ExportFormat format,
         const std::function<void(std::string_view)>& write)
      : directory_(directory), format_(format), write_(write) {}

  Status run() {
    const SqliteTransaction transaction(directory_.db(), SqliteTransaction::Kind::read);
    if (format_ == ExportFormat::csv) write_(kCsvHeader);
    put_layout();
    if (Status status = put_shards(); !status.ok()) return status;
    put_entries();
    put_splits();
    visit_pins(directory_, [this](const std::string& id, const Pin& pin) { put_pin(id, pin); });
    return {};
  }

 private:
  void put(const ExportRow& row) {
    write_(format_ == ExportFormat::csv ? as_csv(row) : as_json_line(row));
  }

  void put_layout() {
    const DirectoryLayout& layout = directory_.layout();
    put({"layout",
         {},
         {},
         nullptr,
         {{"fallback", name_of(layout.fallback)},
          {"buckets", layout.buckets},
          {"hash_shards", layout.hash_shards}}});
  }

  Status put_shards() {
    const Result<std::vector<ShardRow>> shards = list_shards(directory_);
    if (!shards) return shards.status();
    for (const auto& [spec, epoch, tenants, reported, reported_at] : *shards) {
      Json attributes = Json::object();
      for (const auto& [name, value] : spec.attributes) attributes[name] = value;
      const ExportRow row{"shard",
                          {},
                          spec.name,
                          nullptr,
                          {{"primary", spec.primary},
                           {"replicas", spec.replicas},
                           {"region", spec.region},
                           {"weight", spec.weight},
                           {"attributes", attributes}}};
      if (format_ == ExportFormat::csv && row.details.dump().size() > kCsvFieldBytesMax) {
        return {Code::refused,
                fmt::format("shard {} has more than the {} bytes that a field of CSV holds: export "
                            "--json",
                            in_quotes(spec.name), kCsvFieldBytesMax)};
      }
      put(row);
    }
    return {};
  }

  void put_entries() {
    SqliteStatement select = directory_.db().prepare(fmt::format(
        "SELECT {} FROM shard_directory WHERE entry_id NOT GLOB 'part:*' "
        "UNION ALL SELECT shard_directory.entry_id, shard_directory.shard_id, "
        "shard_directory.state, shard_directory.target_shard, shard_directory.epoch, "
        "shard_directory.updated_at, 0 FROM directory_part AS p "
        "JOIN shard_directory USING (entry_id) "
        "JOIN shard_directory AS own ON own.entry_id = p.tenant WHERE own.state <> 'DELETED'",
        kEntryColumns));
    while (select.step()) {
      const TenantRow row = tenant_row_of(select);
      put({"entry", row.id, row.shard, &row, Json::object()});
    }
  }

  void put_splits() {
    SqliteStatement select = directory_.db().prepare(
        "SELECT entry_id, parts FROM directory_split JOIN shard_directory USING (entry_id) WHERE "
        "state <> 'DELETED' ORDER BY entry_id");
    while (select.step()) {
      put({"split", select.text(0), {}, nullptr, {{"parts", select.integer(1)}}});
    }
  }

  void put_pin(const std::string& id, const Pin& pin) {
    Json details = Json::object();
    if (!pin.region.empty()) details["region"] = pin.region;
    if (!pin.reason.empty()) details["reason"] = pin.reason;
    details["who"] = pin.who;
    details["at"] = pin.at;
    put({"pin", id, {}, nullptr, std::move(details)});
  }

  Directory& directory_;
  ExportFormat format_;
  const std::function<void(std::string_view)>& write_;
};

}  // namespace

Status export_directory(Directory& directory, ExportFormat format,
                        const std::function<void(std::string_view row)>& write) {
  return Export(directory, format, write).run();
}

}  // namespace fingerpost
