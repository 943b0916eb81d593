#include "syncer/sqlite_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "shm/route_fields.h"
#include "shm/tenant_id.h"
#include "syncer/sqlite_tables.h"

namespace fingerpost {
namespace {

using namespace std::chrono_literals;

// In the order of epochs: the index that covers it is read from one end to the other, and so is the
// history that says which rows a verb wrote. In any other order each row would cost a page of its
// own.
constexpr std::string_view kRowsSince =
    "SELECT d.entry_id, d.shard_id, d.state, d.target_shard, d.epoch, h.verb IS NOT NULL "
    "FROM shard_directory AS d LEFT JOIN directory_history AS h ON h.version = d.epoch "
    "WHERE d.epoch > ? ORDER BY d.epoch";

// The same of one part, or of one tenant's own row.
constexpr std::string_view kPart =
    "SELECT d.entry_id, d.shard_id, d.state, d.target_shard, d.epoch, h.verb IS NOT NULL "
    "FROM shard_directory AS d LEFT JOIN directory_history AS h ON h.version = d.epoch "
    "WHERE d.entry_id = 'part:' || ? || ':' || ?";
constexpr std::string_view kRow =
    "SELECT d.entry_id, d.shard_id, d.state, d.target_shard, d.epoch, h.verb IS NOT NULL "
    "FROM shard_directory AS d LEFT JOIN directory_history AS h ON h.version = d.epoch "
    "WHERE d.entry_id = ?";

// A reader waits for nobody but a recovery or an exclusive lock; the syncer has other things to do
// meanwhile.
constexpr auto kBusyTimeout = 50ms;

constexpr std::array<std::string_view, 3> kSuffixes{"", "-wal", "-shm"};

// SQLite keeps its files beside the one that a symbolic link leads to.
std::string real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::weakly_canonical(path, error);
  return error ? path : real.native();
}

// What is missing for a reader, as "read permission on PATH"; empty if nothing is.
std::string missing_permission(const std::string& path) {
  const auto may = [](const std::string& name, int mode) {
    return ::faccessat(AT_FDCWD, name.c_str(), mode, AT_EACCESS) == 0 || errno != EACCES;
  };
  const std::string real = real_path(path);
  std::string folder = std::filesystem::path(real).parent_path().native();
  if (folder.empty()) folder = ".";
  if (!may(folder, X_OK)) return "search permission on " + folder;
  for (const std::string_view suffix : kSuffixes) {
    const std::string file = real + std::string(suffix);
    if (!may(file, R_OK)) return "read permission on " + file;
    if (::access(file.c_str(), F_OK) != 0 && ::access(folder.c_str(), W_OK) != 0) {
      return fmt::format("write permission on {}, to make {}", folder, file);
    }
  }
  return {};
}

std::int64_t data_version(SqliteDb& db) {
  return db.integer("PRAGMA data_version");
}

EntryRow entry_of(const SqliteStatement& row) {
  return {row.text(0), row.text(1), row.text(2), row.text(3), row.number(4), row.integer(5) != 0};
}

// Reads split tenants whole, one after the other.
class SplitTable {
 public:
  explicit SplitTable(SqliteDb& db)
      : is_empty_(db.integer("SELECT EXISTS (SELECT 1 FROM directory_split)") == 0),
        read_at_(read_position(db).version),
        split_(db.prepare("SELECT parts, epoch FROM directory_split WHERE entry_id = ?")),
        part_(db.prepare(kPart)) {}

  bool holds(std::string_view id) {
    if (is_empty_) return false;
    split_.bind(id);
    return split_.step();
  }
  // `keep(text)` makes the text of a part last as long as `split` does. The id is the caller's.
  template <class Keep>
  void read(std::string_view id, SplitRow& split, Keep&& keep) {
    split = {};
    split.id = id;
    split.read_at = read_at_;
    if (!holds(id)) return;
    split.epoch = split_.number(1);
    // A number that no split can have is for the judge of the row, not a reason to read on and on.
    const auto parts = std::min<std::uint64_t>(split_.number(0), kPartsMax + 1);
    for (std::uint64_t k = 0; k < parts; ++k) {
      part_.bind(k, id);
      EntryRow part;
      if (part_.step()) {
        part = entry_of(part_);
        part.id = {};
        part.shard = keep(part.shard);
        part.state = keep(part.state);
        part.target = keep(part.target);
      }
      split.parts.push_back(part);
    }
  }

 private:
  bool is_empty_;
  std::uint64_t read_at_;
  SqliteStatement split_;
  SqliteStatement part_;
};

// Whatever changed since a version, sorted into rows, removals and split tenants.
class ChangeReader {
 public:
  ChangeReader(SqliteDb& db, std::uint64_t since, Batch& batch)
      : db_(db), since_(since), batch_(batch), splits_(db) {}

  void read() {
    read_rows();
    read_removals();
    read_splits();
  }

 private:
  void read_rows() {
    SqliteStatement row = db_.prepare(kRowsSince);
    row.bind(since_);
    EntryRow last;
    while (row.step()) {
      EntryRow entry = entry_of(row);
      if (const auto part = part_of_entry_id(entry.id)) {
        touched_.emplace(part->tenant);
        continue;
      }
      if (entry.state != to_string(State::deleted) && splits_.holds(entry.id)) {
        touched_.emplace(entry.id);
        continue;
      }
      entry.id = batch_.keep(entry.id);
      entry.shard = entry.shard == last.shard ? last.shard : batch_.keep(entry.shard);
      entry.state = entry.state == last.state ? last.state : batch_.keep(entry.state);
      entry.target = entry.target == last.target ? last.target : batch_.keep(entry.target);
      batch_.rows.push_back(entry);
      last = entry;
    }
  }

  void read_removals() {
    SqliteStatement row = db_.prepare(
        "SELECT r.entry_id, r.version, h.verb IS NOT NULL "
        "FROM directory_removed AS r LEFT JOIN directory_history AS h ON h.version = r.version "
        "WHERE r.version > ? ORDER BY r.version");
    row.bind(since_);
    while (row.step()) {
      if (const auto part = part_of_entry_id(row.text(0))) {
        touched_.emplace(part->tenant);
      } else {
        batch_.removals.push_back({batch_.keep(row.text(0)), row.number(1), row.integer(2) != 0});
      }
    }
  }

  // A part's row says nothing by itself: the tenant is read whole, as it is now.
  void read_splits() {
    SqliteStatement own = db_.prepare(kRow);
    for (const std::string& tenant : touched_) {
      own.bind(std::string_view(tenant));
      const bool has_row = own.step();
      const bool is_deleted = has_row && own.text(2) == to_string(State::deleted);
      if (!is_deleted && splits_.holds(tenant)) {
        SplitRow split;
        splits_.read(tenant, split, [this](std::string_view text) { return batch_.keep(text); });
        split.id = batch_.keep(tenant);
        batch_.splits.push_back(std::move(split));
      } else if (!has_row) {
        batch_.removals.push_back({batch_.keep(tenant), batch_.end.version, false});
      } else if (own.number(4) <= since_) {  // else it is among the rows already
        batch_.rows.push_back(batch_.keep(entry_of(own)));
      }
    }
  }

  SqliteDb& db_;
  std::uint64_t since_;
  Batch& batch_;
  SplitTable splits_;
  std::set<std::string, std::less<>> touched_;  // tenants with parts, or with some until lately
};

class SqliteFullRead final : public FullRead {
 public:
  explicit SqliteFullRead(const std::string& path)
      : db_(path, SqliteDb::Mode::read_only, kBusyTimeout),
        transaction_(db_, SqliteTransaction::Kind::read) {
    check_is_directory(db_);
    layout_ = read_layout_row(db_);
    end_ = read_position(db_);
    topology_ = read_topology_rows(db_);
    // Parts are no entries of their own; ';' is the character after ':'.
    row_count_ = static_cast<std::uint64_t>(
        db_.integer("SELECT (SELECT count(*) FROM shard_directory) - (SELECT count(*) FROM "
                    "shard_directory WHERE entry_id >= 'part:' AND entry_id < 'part;')"));
    SqliteStatement split = db_.prepare(
        "SELECT s.entry_id, s.parts FROM directory_split AS s "
        "LEFT JOIN shard_directory AS d ON d.entry_id = s.entry_id WHERE d.state IS NOT 'DELETED'");
    while (split.step()) {
      split_tenants_.emplace(split.text(0));
      part_count_ += std::min<std::uint64_t>(split.number(1), kPartsMax);
    }
    next_split_ = split_tenants_.begin();
    splits_.emplace(db_);
    rows_.emplace(db_.prepare(kRowsSince));
    rows_->bind(-1);
  }

  Result<bool> next(EntryRow& row) override {
    if (!rows_) return false;
    try {
      while (rows_->step()) {
        row = entry_of(*rows_);
        const bool is_split = !split_tenants_.empty() && split_tenants_.contains(row.id);
        if (!is_split && !part_of_entry_id(row.id)) return true;
      }
      rows_.reset();
      return false;
    } catch (const SqliteError& error) {
      rows_.reset();
      return error.status();
    }
  }

  Result<bool> next_split(SplitRow& split) override {
    if (next_split_ == split_tenants_.end()) return false;
    try {
      splits_->read(*next_split_++, split, [this](std::string_view text) -> std::string_view {
        return *names_.emplace(text).first;
      });
      return true;
    } catch (const SqliteError& error) {
      next_split_ = split_tenants_.end();
      return error.status();
    }
  }

 private:
  using Texts = std::set<std::string, std::less<>>;

  SqliteDb db_;
  SqliteTransaction transaction_;
  std::optional<SqliteStatement> rows_;
  Texts split_tenants_;
  Texts::const_iterator next_split_;
  std::optional<SplitTable> splits_;
  Texts names_;  // of shards and states: a few, that most parts share
};

}  // namespace

SqliteSource::SqliteSource(std::string path) : path_(std::move(path)), watch_(path_) {}

SqliteSource::Files SqliteSource::look() const {
  const std::string real = real_path(path_);
  Files files;
  for (std::size_t i = 0; i < kSuffixes.size(); ++i) {
    struct stat found {};
    if (::stat((real + std::string(kSuffixes[i])).c_str(), &found) == 0) {
      files.identities[i] = {found.st_dev, found.st_ino};
    }
  }
  return files;
}

SqliteDb& SqliteSource::connect() {
  if (db_ != nullptr && look() == files_) return *db_;
  db_.reset();
  seen_.reset();
  const Files before = look();
  auto db = std::make_unique<SqliteDb>(path_, SqliteDb::Mode::read_only, kBusyTimeout);
  check_is_directory(*db);
  // Not before the first read: that is when SQLite opens, or makes, the files of the log.
  files_ = look();
  // Which of the two was opened? The wrong one, taken for the other, would be read for ever.
  if (files_.identities[0] != before.identities[0]) {
    throw SqliteError({Code::unavailable, path_ + " was replaced while it was opened"});
  }
  db_ = std::move(db);
  return *db_;
}

template <class Value, class Read>
Result<Value> SqliteSource::read(Read read) {
  try {
    return read(connect());
  } catch (const SqliteError& error) {
    // A fresh connection costs little, and whatever state this one is in cannot stand in the way of
    // the next.
    db_.reset();
    seen_.reset();
    return explained(error);
  }
}

Status SqliteSource::explained(const SqliteError& error) const {
  const Status& status = error.status();
  switch (status.code()) {
    case Code::absent:
    case Code::refused:
    case Code::corrupt:
      return status;
    case Code::busy:
    case Code::io_error:
    case Code::no_space:
      return {Code::unavailable, status.message()};
    default:
      break;
  }
  if (const std::string missing = missing_permission(path_); !missing.empty()) {
    return {Code::not_permitted, fmt::format("{}; missing: {}", status.message(), missing)};
  }
  return status.code() == Code::not_permitted ? status
                                              : Status{Code::unavailable, status.message()};
}

Result<DirectoryLayout> SqliteSource::read_layout() {
  return read<DirectoryLayout>([](SqliteDb& db) {
    const SqliteTransaction transaction(db, SqliteTransaction::Kind::read);
    return read_layout_row(db);
  });
}

Result<bool> SqliteSource::may_have_changed() {
  // data_version counts per connection, so that of a new one says nothing; the pragma itself begins
  // a read transaction, without which the number would be an old one.
  return read<bool>([this](SqliteDb& db) { return seen_ != data_version(db); });
}

Result<std::unique_ptr<Batch>> SqliteSource::read_changes(const Cursor& from,
                                                          std::uint64_t replay_from) {
  return read<std::unique_ptr<Batch>>([&](SqliteDb& db) {
    const SqliteTransaction transaction(db, SqliteTransaction::Kind::read);
    check_is_directory(db);  // somebody may have dropped a table since
    auto batch = std::make_unique<Batch>();
    batch->layout = read_layout_row(db);
    batch->end = read_position(db);
    batch->approved = read_approved_version(db);
    if (from.version < batch->layout.replay_floor) {
      batch->kind = Batch::Kind::below_floor;
      return batch;
    }
    if (from.version > 0 && !history_has(db, from)) {
      batch->kind = Batch::Kind::other_history;
      return batch;
    }
    const std::uint64_t since =
        replay_from == 0 ? from.version : std::min(from.version, replay_from - 1);
    if (read_topology_epoch(db) > since) batch->topology = read_topology_rows(db);
    if (batch->end.version > since) {
      ChangeReader(db, since, *batch).read();
    }
    seen_ = data_version(db);
    return batch;
  });
}

Result<std::unique_ptr<FullRead>> SqliteSource::read_all() {
  return read<std::unique_ptr<FullRead>>([this](SqliteDb&) -> std::unique_ptr<FullRead> {
    return std::make_unique<SqliteFullRead>(path_);
  });
}

}  // namespace fingerpost
