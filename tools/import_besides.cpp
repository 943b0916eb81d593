#include "tools/import_besides.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "shm/tenant_id.h"
#include "tools/directory_init.h"
#include "tools/directory_pins.h"
#include "tools/directory_shards.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

// Of a record of `kind`, which has `names` and nothing else; empty if nothing is wrong.
std::string why_not_details(const ImportRecord& record, std::vector<std::string_view> names) {
  for (const auto& [name, value] : record.details.items()) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return fmt::format("a {} has no {}", record.kind, in_quotes(name));
    }
  }
  return {};
}

std::string text_at(const nlohmann::json& details, const char* name) {
  const auto found = details.find(name);
  return found == details.end() || found->is_null() ? std::string() : found->get<std::string>();
}

ShardSpec spec_of(const ImportRecord& record) {
  const nlohmann::json& details = record.details;
  ShardSpec spec;
  spec.name = record.shard;
  spec.primary = text_at(details, "primary");
  spec.region = text_at(details, "region");
  if (details.contains("replicas")) details.at("replicas").get_to(spec.replicas);
  if (details.contains("weight")) {
    const auto weight = details.at("weight").get<std::int64_t>();
    if (weight < 0 || weight > UINT32_MAX) {
      throw std::out_of_range(fmt::format("weight {} is not from 0 to {}", weight, UINT32_MAX));
    }
    spec.weight = static_cast<std::uint32_t>(weight);
  }
  if (details.contains("attributes")) {
    for (const auto& [name, value] : details.at("attributes").items()) {
      spec.attributes.emplace_back(name, value.get<std::string>());
    }
  }
  return spec;
}

}  // namespace

ImportBesides::ImportBesides(Directory& directory, ImportFaults& faults)
    : directory_(directory), faults_(faults) {
  directory_.db().exec(
      "CREATE TEMP TABLE staged_shard (shard_id TEXT NOT NULL PRIMARY KEY, region TEXT NOT NULL) "
      "STRICT, WITHOUT ROWID;"
      "CREATE TEMP TABLE staged_split (entry_id TEXT NOT NULL PRIMARY KEY, parts INTEGER NOT NULL, "
      "line INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
      "CREATE TEMP TABLE staged_pin (entry_id TEXT NOT NULL PRIMARY KEY, region TEXT, reason TEXT, "
      "who TEXT, at TEXT, line INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
      "CREATE TEMP VIEW known_shard AS SELECT shard_id, region FROM main.shard_topology WHERE "
      "shard_id NOT IN (SELECT shard_id FROM temp.staged_shard) UNION ALL "
      "SELECT shard_id, region FROM temp.staged_shard");
}

ImportBesides::~ImportBesides() {
  try {
    directory_.db().exec(
        "DROP VIEW temp.known_shard; DROP TABLE temp.staged_pin; DROP TABLE temp.staged_split; "
        "DROP TABLE temp.staged_shard");
  } catch (const SqliteError&) {
    // They go with the connection.
  }
}

void ImportBesides::stage(const ImportRecord& record, std::uint64_t line) {
  try {
    if (record.kind == "layout") return stage_layout(record, line);
    if (record.kind == "shard") return stage_shard(record, line);
    if (record.kind == "split") return stage_split(record, line);
    if (record.kind == "pin") return stage_pin(record, line);
  } catch (const nlohmann::json::exception& error) {
    return faults_.add(line, fmt::format("a {}: {}", record.kind, error.what()));
  } catch (const std::out_of_range& error) {
    return faults_.add(line, fmt::format("a {}: {}", record.kind, error.what()));
  }
  faults_.add(line, fmt::format("kind {} is none of entry, layout, shard, split, pin",
                                in_quotes(record.kind)));
}

void ImportBesides::stage_layout(const ImportRecord& record, std::uint64_t line) {
  if (auto why = why_not_details(record, {"fallback", "buckets", "hash_shards"}); !why.empty()) {
    return faults_.add(line, std::move(why));
  }
  const DirectoryLayout& layout = directory_.layout();
  const nlohmann::json own = {{"fallback", name_of(layout.fallback)},
                              {"buckets", layout.buckets},
                              {"hash_shards", layout.hash_shards}};
  if (record.details == own) return;
  faults_.add(line, fmt::format("the entries are of a directory with {}; this one has {}",
                                record.details.dump(), own.dump()));
}

void ImportBesides::stage_shard(const ImportRecord& record, std::uint64_t line) {
  if (auto why = why_not_details(record, {"primary", "replicas", "region", "weight", "attributes"});
      !why.empty()) {
    return faults_.add(line, std::move(why));
  }
  const Result<ShardSpec> spec = edited(spec_of(record), {});
  if (!spec) return faults_.add(line, spec.status().message());
  SqliteStatement insert = directory_.db().prepare(
      "INSERT INTO temp.staged_shard (shard_id, region) VALUES (?, ?) ON CONFLICT DO NOTHING");
  insert.bind(spec->name, spec->region).run();
  if (directory_.db().changes() != 0) return shards_.push_back({*spec, line});
  const auto earlier = std::find_if(shards_.begin(), shards_.end(), [&](const StagedShard& shard) {
    return shard.spec.name == spec->name;
  });
  if (earlier->spec == *spec) return;
  faults_.add(line, fmt::format("shard {} is on line {} already, with other values",
                                in_quotes(spec->name), earlier->line));
}

void ImportBesides::stage_split(const ImportRecord& record, std::uint64_t line) {
  if (auto why = why_not_details(record, {"parts"}); !why.empty()) {
    return faults_.add(line, std::move(why));
  }
  if (const auto why = why_not_tenant_id(record.id)) {
    return faults_.add(line, fmt::format("entry_id {} {}", in_quotes(record.id), *why));
  }
  const auto parts = record.details.at("parts").get<std::int64_t>();
  if (parts < 2 || parts > kPartsMax) {
    return faults_.add(line, fmt::format("{} parts: from 2 to {} are possible", parts, kPartsMax));
  }
  directory_.db()
      .prepare(
          "INSERT INTO temp.staged_split (entry_id, parts, line) VALUES (?, ?, ?) ON CONFLICT "
          "DO NOTHING")
      .bind(record.id, parts, line)
      .run();
  if (directory_.db().changes() != 0) return;
  SqliteStatement earlier =
      directory_.db().prepare("SELECT parts, line FROM temp.staged_split WHERE entry_id = ?");
  earlier.bind(record.id).step();
  if (earlier.integer(0) == parts) return;
  faults_.add(line, fmt::format("the split of {} is on line {} already, with {} parts",
                                in_quotes(record.id), earlier.integer(1), earlier.integer(0)));
}

void ImportBesides::stage_pin(const ImportRecord& record, std::uint64_t line) {
  if (auto why = why_not_details(record, {"region", "reason", "who", "at"}); !why.empty()) {
    return faults_.add(line, std::move(why));
  }
  if (const auto why = why_not_tenant_id(record.id)) {
    return faults_.add(line, fmt::format("entry_id {} {}", in_quotes(record.id), *why));
  }
  const std::string fields[] = {text_at(record.details, "region"),
                                text_at(record.details, "reason"), text_at(record.details, "who"),
                                text_at(record.details, "at")};
  for (const std::string& field : fields) {
    if (const auto why = why_not_shard_field(field)) {
      return faults_.add(line, fmt::format("{} {}", in_quotes(field), *why));
    }
  }
  directory_.db()
      .prepare(
          "INSERT INTO temp.staged_pin (entry_id, region, reason, who, at, line) VALUES (?, "
          "nullif(?, ''), nullif(?, ''), nullif(?, ''), nullif(?, ''), ?) ON CONFLICT DO "
          "NOTHING")
      .bind(record.id, fields[0], fields[1], fields[2], fields[3], line)
      .run();
  if (directory_.db().changes() != 0) return;
  SqliteStatement earlier = directory_.db().prepare(
      "SELECT region IS nullif(?2, '') AND reason IS nullif(?3, ''), line FROM temp.staged_pin "
      "WHERE entry_id = ?1");
  earlier.bind(record.id, fields[0], fields[1]).step();
  if (earlier.integer(0) != 0) return;
  faults_.add(line, fmt::format("the pin of {} is on line {} already, and says otherwise",
                                in_quotes(record.id), earlier.integer(1)));
}

void ImportBesides::compare() {
  compare_shards();
  compare_parts();
  compare_splits();
  compare_pins();
  compare_regions();
}

void ImportBesides::compare_shards() {
  if (shards_.empty()) return;
  const Result<std::vector<ShardRow>> there = list_shards(directory_);
  if (!there) throw SqliteError(there.status());
  for (StagedShard& shard : shards_) {
    const auto found = std::find_if(there->begin(), there->end(), [&](const ShardRow& row) {
      return row.spec.name == shard.spec.name;
    });
    if (found == there->end()) continue;
    ShardSpec bare;
    bare.name = shard.spec.name;
    if (found->spec == shard.spec) {
      shard.fate = StagedShard::Fate::equal;
    } else if (found->spec == bare) {
      shard.fate = StagedShard::Fate::fill;
    } else {
      faults_.add(shard.line, fmt::format("shard {} exists with other values; `shard set` changes "
                                          "it",
                                          in_quotes(shard.spec.name)));
    }
  }
}

void ImportBesides::add_faults(const std::string& select) {
  SqliteStatement rows = directory_.db().prepare(select);
  while (rows.step()) {
    faults_.add(rows.number(0),
                fmt::format(fmt::runtime(rows.text(2)), in_quotes(rows.text(1)), rows.text(3)));
  }
}

void ImportBesides::compare_parts() {
  add_faults(
      "SELECT line, entry_id, 'entry_id {} is a part, and its tenant is not split', '' "
      "FROM temp.staged AS s WHERE tenant IS NOT NULL "
      "AND NOT EXISTS (SELECT 1 FROM main.shard_directory AS d WHERE d.entry_id = s.entry_id) "
      "AND NOT EXISTS (SELECT 1 FROM temp.staged_split AS p WHERE p.entry_id = s.tenant AND "
      "p.parts > s.part)");
}

void ImportBesides::compare_splits() {
  add_faults(
      "SELECT p.line, p.entry_id, 'tenant {} exists with {} parts; an import does not change "
      "that', coalesce(s.parts, 'no') FROM temp.staged_split AS p "
      "JOIN main.shard_directory AS d USING (entry_id) "
      "LEFT JOIN main.directory_split AS s USING (entry_id) WHERE s.parts IS NOT p.parts");
  add_faults(
      "SELECT p.line, p.entry_id, 'tenant {} is split, and must have an ACTIVE entry here{}', '' "
      "FROM temp.staged_split AS p LEFT JOIN temp.staged AS s USING (entry_id) "
      "WHERE coalesce(s.state, CASE WHEN s.line IS NOT NULL THEN 'ACTIVE' END) IS NOT 'ACTIVE' "
      "AND NOT EXISTS (SELECT 1 FROM main.shard_directory AS d WHERE d.entry_id = p.entry_id)");
  add_faults(
      "SELECT p.line, p.entry_id, 'tenant {} is split, and its own entry is on shard {}, unlike "
      "its part 0', s.shard_id FROM temp.staged_split AS p "
      "JOIN temp.staged AS s USING (entry_id) "
      "JOIN temp.staged AS part ON part.entry_id = 'part:0:' || p.entry_id "
      "WHERE part.shard_id <> s.shard_id");
}

void ImportBesides::compare_pins() {
  add_faults(
      "SELECT p.line, p.entry_id, 'tenant {} is pinned otherwise{}; an import does not change "
      "that', '' FROM temp.staged_pin AS p JOIN main.directory_pin AS d USING (entry_id) "
      "WHERE p.region IS NOT d.region OR p.reason IS NOT d.reason");
  if (directory_.layout().fallback == Fallback::none) return;
  add_faults(
      "SELECT line, entry_id, 'tenant {} is pinned, and must have an entry{}', '' "
      "FROM temp.staged_pin AS p "
      "WHERE NOT EXISTS (SELECT 1 FROM temp.staged AS s WHERE s.entry_id = p.entry_id) "
      "AND NOT EXISTS (SELECT 1 FROM main.shard_directory AS d WHERE d.entry_id = p.entry_id)");
}

// What is staged, and what is there, against the pins that are there or staged.
void ImportBesides::compare_regions() {
  for (const std::string pins : {"temp.staged_pin", "main.directory_pin"}) {
    add_faults(
        "SELECT s.line, s.entry_id, 'entry_id {} is pinned to another region than that of shard "
        "{}', t.shard_id FROM " +
        pins +
        " AS p JOIN temp.staged AS s ON s.entry_id = p.entry_id OR s.tenant = p.entry_id "
        "JOIN temp.known_shard AS t ON t.shard_id IN (s.shard_id, s.target_shard) "
        "WHERE t.region <> p.region AND s.state IS NOT 'DELETED'");
  }
  SqliteStatement there = directory_.db().prepare(
      "SELECT line, entry_id, region FROM temp.staged_pin JOIN main.shard_directory USING "
      "(entry_id) WHERE region IS NOT NULL");
  while (there.step()) {
    const Status status = check_is_in(directory_, there.text(1), there.text(2));
    if (!status.ok()) faults_.add(there.number(0), status.message());
  }
}

std::uint64_t ImportBesides::insert_shards() {
  std::uint64_t written = 0;
  for (const StagedShard& shard : shards_) {
    if (shard.fate == StagedShard::Fate::equal) continue;
    write_shard(directory_, shard.spec);
    ++written;
  }
  return written;
}

std::uint64_t ImportBesides::insert_splits() {
  directory_.db().exec(
      "INSERT INTO main.directory_split (entry_id, parts) SELECT entry_id, parts FROM "
      "temp.staged_split AS p WHERE NOT EXISTS (SELECT 1 FROM main.directory_split AS d WHERE "
      "d.entry_id = p.entry_id) ORDER BY entry_id");
  const auto written = static_cast<std::uint64_t>(directory_.db().changes());
  directory_.db().exec(
      "UPDATE main.shard_directory AS d SET shard_id = s.shard_id, state = coalesce(s.state, "
      "'ACTIVE'), target_shard = s.target_shard FROM temp.staged AS s "
      "WHERE s.tenant IS NOT NULL AND d.entry_id = s.entry_id AND (d.shard_id <> s.shard_id OR "
      "d.state <> coalesce(s.state, 'ACTIVE') OR d.target_shard IS NOT s.target_shard)");
  return written;
}

std::uint64_t ImportBesides::insert_pins() {
  directory_.db().exec(
      "INSERT INTO main.directory_pin (entry_id, region, reason, who, at) SELECT p.entry_id, "
      "p.region, p.reason, coalesce(p.who, s.who), coalesce(p.at, "
      "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')) FROM temp.staged_pin AS p, main.directory_session AS "
      "s WHERE NOT EXISTS (SELECT 1 FROM main.directory_pin AS d WHERE d.entry_id = p.entry_id) "
      "ORDER BY p.entry_id");
  return static_cast<std::uint64_t>(directory_.db().changes());
}

}  // namespace fingerpost
