#include "tools/segment_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "shm/hash.h"
#include "shm/tenant_id.h"
#include "syncer/row_route.h"
#include "syncer/row_sink.h"

namespace fingerpost {
namespace {

constexpr int kAttemptsMax = 5;  // a generation switch in each of them is a table that only grows

std::string route_text(std::string_view shard, State state, std::string_view target,
                       std::uint64_t epoch) {
  return fmt::format("{}{}{}{}{}, epoch {}", shard, shard.empty() ? "" : " ", to_string(state),
                     target.empty() ? "" : " to ", target, epoch);
}

std::string shard_text(const ShardSpec& spec) {
  std::string attributes;
  for (const auto& [name, value] : spec.attributes)
    attributes += fmt::format(" {}={}", name, value);
  return fmt::format("primary '{}', replicas [{}], region '{}', weight {}, attributes [{}]",
                     spec.primary, fmt::join(spec.replicas, ", "), spec.region, spec.weight,
                     attributes.empty() ? attributes : attributes.substr(1));
}

// What the segment serves for one id or fallback word.
std::string served_text(const Route& route) {
  if (route.answer() == Answer::undetermined) return "undetermined: its bytes make no sense";
  return route_text(route.shard().name(), route.state(), route.target().name(), route.epoch());
}

std::string row_text(const EntryRow& row) {
  return route_text(row.shard, parse_state(row.state), row.target, row.epoch);
}

bool same(const EntryRow& row, const Route& route) {
  const State state = parse_state(row.state);
  if (route.state() != state || route.epoch() != row.epoch) return false;
  return state == State::deleted ||
         (route.shard().name() == row.shard && route.target().name() == row.target);
}

// One attempt. conflict: begin again.
class Comparison {
 public:
  Comparison(Source& source, const Reader& reader, std::chrono::nanoseconds wait)
      : source_(source), reader_(reader), wait_(wait) {}

  Result<CheckReport> run() {
    auto read = source_.read_all();
    if (!read) return read.status();
    read_ = std::move(*read);
    report_.directory_version = read_->end().version;
    before_ = reader_.status();
    if (before_.directory_id != read_->layout().directory_id) {
      add(DifferenceKind::directory, {}, to_string(read_->layout().directory_id),
          to_string(before_.directory_id));
      report_.segment_version = before_.version;
      return std::move(report_);
    }
    // Where it is not served in time, that is the first of the differences.
    const Status served = reader_.wait_version(read_->end().version, wait_);
    if (served.code() == Code::other_history) return Status(Code::conflict, served.message());
    before_ = reader_.status();
    compare_layout();
    compare_shards();
    if (Status s = scan_segment(); !s.ok()) return s;
    if (Status s = compare_rows(); !s.ok()) return s;
    if (Status s = compare_splits(); !s.ok()) return s;
    compare_hash_list();
    report_words_of_no_row();
    if (Status s = report_entries_of_no_row(); !s.ok()) return s;
    if (Status s = settle(); !s.ok()) return s;
    return std::move(report_);
  }

 private:
  void add(DifferenceKind kind, std::string_view id, std::string directory, std::string segment,
           std::string_view why = {}) {
    report_.differences.push_back(
        {kind, std::string(id), std::move(directory), std::move(segment), std::string(why)});
  }

  std::uint64_t key_of(std::string_view id) const { return index_hash(id, seed_); }

  void compare_layout() {
    const DirectoryLayout& layout = read_->layout();
    if (layout.buckets == before_.buckets && layout.hash_shards.size() == before_.hash_shards)
      return;
    const auto text = [](std::uint64_t buckets, std::uint64_t hash_shards) {
      return fmt::format("{} buckets, {} shards to hash over", buckets, hash_shards);
    };
    add(DifferenceKind::layout, {}, text(layout.buckets, layout.hash_shards.size()),
        text(before_.buckets, before_.hash_shards));
  }

  void compare_shards() {
    std::map<std::string, ShardSpec, std::less<>> served;
    reader_.visit_shards(
        [&](const ShardView& shard) { served.emplace(std::string(shard.name()), to_spec(shard)); });
    for (const ShardSpec& spec : read_->topology()) {
      shard_names_.insert(spec.name);
      ++report_.shards;
      const auto found = served.find(spec.name);
      if (found == served.end()) {
        add(DifferenceKind::shard, spec.name, shard_text(spec), {});
        continue;
      }
      if (found->second != spec) {
        add(DifferenceKind::shard, spec.name, shard_text(spec), shard_text(found->second));
      }
      served.erase(found);
    }
    for (const auto& [name, spec] : served) add(DifferenceKind::shard, name, {}, shard_text(spec));
  }

  // The keys of all overrides, and the fallback words.
  Status scan_segment() {
    keys_.reserve(before_.counters[static_cast<std::size_t>(Counter::entries)]);
    words_.resize(before_.buckets + before_.hash_shards);
    const Status visited = reader_.visit_entries([&](std::string_view id, const Route& route) {
      if (route.source() == RouteSource::override_entry) {
        keys_.push_back(key_of(id));
      } else if (const auto at = number_of(id); at < words_.size()) {
        words_[at].served = route;
      }
    });
    if (!visited.ok()) return {Code::conflict, visited.message()};
    std::sort(keys_.begin(), keys_.end());
    matched_.resize(keys_.size());
    return {};
  }

  Status compare_rows() {
    EntryRow row;
    for (;;) {
      const Result<bool> more = read_->next(row);
      if (!more) return more.status();
      if (!*more) return {};
      const RowPlace place = place_row(row.id, read_->layout());
      if (place.bucket) {
        compare_bucket(row, *place.bucket);
      } else {
        compare_entry(row, place.why_not);
      }
    }
  }

  Status compare_splits() {
    SplitRow split;
    for (;;) {
      const Result<bool> more = read_->next_split(split);
      if (!more) return more.status();
      if (!*more) return {};
      compare_split(split);
    }
  }

  void compare_split(const SplitRow& split) {
    note_row_of(split.id);
    std::vector<Route> routes(kPartsMax);
    routes.resize(reader_.resolve_all(split.id, routes));
    if (routes.size() != split.parts.size() || routes[0].source() != RouteSource::part) {
      const auto parts = [](std::size_t count) {
        return fmt::format("split into {} parts", count);
      };
      add(DifferenceKind::entry, split.id, parts(split.parts.size()),
          routes[0].source() == RouteSource::part ? parts(routes.size()) : served_text(routes[0]));
      return;
    }
    for (std::size_t k = 0; k < routes.size(); ++k) {
      const EntryRow& part = split.parts[k];
      if (same(part, routes[k])) continue;
      add(DifferenceKind::entry, fmt::format("{}{}:{}", kPartPrefix, k, split.id), row_text(part),
          served_text(routes[k]), why_not_served(part));
    }
  }

  // Counts an entry of the directory, and notes that the segment's is not there without a row.
  void note_row_of(std::string_view id) {
    ++report_.entries;
    const std::uint64_t key = key_of(id);
    const auto found = std::lower_bound(keys_.begin(), keys_.end(), key);
    if (found != keys_.end() && *found == key) {
      matched_[static_cast<std::size_t>(found - keys_.begin())] = true;
    }
  }

  void compare_bucket(const EntryRow& row, std::uint32_t bucket) {
    ++report_.fallback_words;
    std::optional<Route> served;
    if (bucket < words_.size()) {
      served = words_[bucket].served;
      words_[bucket].has_row = true;
    }
    if (served && same(row, *served)) return;
    const bool deleted = parse_state(row.state) == State::deleted;
    add(DifferenceKind::bucket, row.id, row_text(row), served ? served_text(*served) : "",
        deleted ? "is a bucket, which cannot be DELETED" : why_not_served(row));
  }

  // By the very lookup that workers do.
  void compare_entry(const EntryRow& row, std::string_view why_not) {
    note_row_of(row.id);
    const Route route = reader_.resolve(row.id);
    const bool has_own = route.source() == RouteSource::override_entry;
    if (has_own && same(row, route)) return;
    const bool disturbed = route.answer() == Answer::undetermined;
    add(DifferenceKind::entry, row.id, row_text(row),
        has_own || disturbed ? served_text(route) : "",
        why_not.empty() ? why_not_served(row) : why_not);
  }

  std::string_view why_not_served(const EntryRow& row) const {
    const bool needs_shard = parse_state(row.state) != State::deleted;
    return needs_shard && !shard_names_.contains(std::string(row.shard))
               ? "names a shard that the topology does not have"
               : "";
  }

  void compare_hash_list() {
    const DirectoryLayout& layout = read_->layout();
    if (layout.fallback != Fallback::hash) return;
    for (std::size_t i = 0; i < layout.hash_shards.size(); ++i) {
      ++report_.fallback_words;
      EntryRow row;
      row.shard = layout.hash_shards[i];
      row.state = to_string(State::active);
      row.epoch = layout.epoch;
      std::optional<Route> served;
      if (i < words_.size()) {
        served = words_[i].served;
        words_[i].has_row = true;
      }
      if (served && same(row, *served)) continue;
      add(DifferenceKind::hash, fmt::format("hash:{}", i), row_text(row),
          served ? served_text(*served) : "", why_not_served(row));
    }
  }

  void report_words_of_no_row() {
    const bool hash = read_->layout().fallback == Fallback::hash;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].has_row || !words_[i].served) continue;
      add(hash ? DifferenceKind::hash : DifferenceKind::bucket,
          fmt::format("{}{}", hash ? "hash:" : kBucketPrefix, i), {},
          served_text(*words_[i].served));
    }
  }

  // Names the overrides whose keys no row had. A key that is there twice and was met once stands
  // for an id that two slots hold.
  Status report_entries_of_no_row() {
    std::unordered_set<std::uint64_t> unmatched;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (!matched_[i]) unmatched.insert(keys_[i]);
    }
    if (unmatched.empty()) return {};
    const Status visited = reader_.visit_entries([&](std::string_view id, const Route& route) {
      const std::uint64_t key = key_of(id);
      if (route.source() != RouteSource::override_entry || unmatched.erase(key) == 0) return;
      const auto first = std::lower_bound(keys_.begin(), keys_.end(), key);
      const bool has_row = matched_[static_cast<std::size_t>(first - keys_.begin())];
      add(DifferenceKind::entry, id, {}, served_text(route),
          has_row ? "is in the table twice" : "");
    });
    return visited.ok() ? Status() : Status(Code::conflict, visited.message());
  }

  // Lets go of what the directory has changed since it was read, and judges the versions.
  Status settle() {
    const SegmentStatus after = reader_.status();
    report_.segment_version = after.version;
    report_.quarantined = after.counters[static_cast<std::size_t>(Counter::quarantined)];
    report_.withheld = after.counters[static_cast<std::size_t>(Counter::withheld)];
    if (after.incarnation != before_.incarnation) {
      return {Code::conflict, fmt::format("the segment went from incarnation {} to {}",
                                          before_.incarnation, after.incarnation)};
    }
    const Cursor& end = read_->end();
    if (report_.differences.empty() && Cursor{after.version, after.nonce} == end) return {};
    const auto batch = source_.read_changes(end, 0);
    if (!batch) return batch.status();
    if ((*batch)->kind != Batch::Kind::changes) {
      return {Code::conflict, fmt::format("the directory's history at version {} was replaced or "
                                          "forgotten",
                                          end.version)};
    }
    dismiss(**batch);
    const auto differs = [&](std::string_view why) {
      report_.differences.insert(report_.differences.begin(),
                                 {DifferenceKind::version,
                                  {},
                                  fmt::format("{}", (*batch)->end.version),
                                  fmt::format("{}", after.version),
                                  std::string(why)});
    };
    if (after.version < end.version) {
      differs(fmt::format("version {} was not served within {} ms", end.version,
                          std::chrono::duration_cast<std::chrono::milliseconds>(wait_).count()));
    } else if (after.version == end.version && after.nonce != end.nonce) {
      differs("both are at the same version of different histories");
    } else if (after.version > (*batch)->end.version) {
      differs("the segment is ahead of the directory, which was restored or is another copy");
    }
    return {};
  }

  void dismiss(const Batch& batch) {
    std::unordered_set<std::string_view> changed;
    for (const EntryRow& row : batch.rows) changed.insert(row.id);
    for (const SplitRow& split : batch.splits) changed.insert(split.id);
    for (const Removal& removal : batch.removals) changed.insert(removal.id);
    const bool hash_changed = batch.layout.epoch != read_->layout().epoch;
    report_.changed_meanwhile =
        std::erase_if(report_.differences, [&](const Difference& difference) {
          switch (difference.kind) {
            case DifferenceKind::shard:
              return batch.topology.has_value();
            case DifferenceKind::hash:
              return hash_changed || batch.topology.has_value();
            default:
              return changed.contains(tenant_of(difference.id));
          }
        });
  }

  // Of a part's id its tenant, else the id itself.
  static std::string_view tenant_of(std::string_view id) {
    const auto part = part_of_entry_id(id);
    return part ? part->tenant : id;
  }

  // Of a fallback word's id: what follows the colon.
  static std::uint64_t number_of(std::string_view id) {
    const std::string_view digits = id.substr(id.find(':') + 1);
    std::uint64_t number = UINT64_MAX;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return number;
  }

  struct Word {
    std::optional<Route> served;
    bool has_row = false;
  };

  Source& source_;
  const Reader& reader_;
  std::chrono::nanoseconds wait_;
  std::uint64_t seed_ = draw_seed();
  std::unique_ptr<FullRead> read_;
  SegmentStatus before_;
  std::unordered_set<std::string> shard_names_;
  std::vector<std::uint64_t> keys_;  // of the segment's overrides, sorted
  std::vector<bool> matched_;        // by a row
  std::vector<Word> words_;
  CheckReport report_;
};

}  // namespace

std::string_view to_string(DifferenceKind kind) noexcept {
  switch (kind) {
    case DifferenceKind::directory:
      return "directory";
    case DifferenceKind::version:
      return "version";
    case DifferenceKind::layout:
      return "layout";
    case DifferenceKind::shard:
      return "shard";
    case DifferenceKind::bucket:
      return "bucket";
    case DifferenceKind::hash:
      return "hash";
    case DifferenceKind::entry:
      break;
  }
  return "entry";
}

Result<CheckReport> check_segment(Source& source, const Reader& reader,
                                  std::chrono::nanoseconds wait) {
  Status last;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Result<CheckReport> report = Comparison(source, reader, wait).run();
    if (report || report.status().code() != Code::conflict) return report;
    last = report.status();
  }
  return Status(Code::unavailable,
                fmt::format("given up after {} attempts: {}", kAttemptsMax, last.message()));
}

}  // namespace fingerpost
