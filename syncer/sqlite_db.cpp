#include "syncer/sqlite_db.h"

#include <sqlite3.h>

#include <cerrno>
#include <utility>

namespace fingerpost {
namespace {

Code code_of(int extended) {
  switch (extended) {
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_ROWID:
      return Code::conflict;
    default:
      break;
  }
  switch (extended & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::busy;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return Code::not_permitted;
    case SQLITE_FULL:
      return Code::no_space;
    case SQLITE_CORRUPT:
      return Code::corrupt;
    case SQLITE_IOERR:
      return Code::io_error;
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_NOTADB:
      return Code::refused;
    case SQLITE_CANTOPEN:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

// SQLite takes "file:…" and ":memory:" for more than names; a file may be called so.
std::string as_plain_name(const std::string& path) {
  return path.starts_with('/') ? path : "./" + path;
}

}  // namespace

Result<std::string> sqlite_path_of_url(std::string_view url) {
  constexpr std::string_view kScheme = "sqlite:";
  std::string_view path = url;
  if (url.starts_with(kScheme)) {
    path.remove_prefix(kScheme.size());
  } else if (const std::size_t end = url.find("://"); end != std::string_view::npos) {
    return Status(Code::refused, "directory '" + std::string(url) + "': the scheme '" +
                                     std::string(url.substr(0, end)) +
                                     "' is not known; give sqlite:PATH or a path");
  }
  if (path.empty()) {
    return Status(Code::refused,
                  "directory '" + std::string(url) + "': no path; give sqlite:PATH or a path");
  }
  if (path.find('\0') != std::string_view::npos) {
    return Status(Code::refused, "the directory's path holds a NUL byte");
  }
  return std::string(path);
}

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const noexcept {
  sqlite3_finalize(statement);
}

void SqliteStatement::bind_at(int parameter, std::string_view text) {
  // A null pointer would bind NULL; an empty text is not NULL.
  const char* bytes = text.data() != nullptr ? text.data() : "";
  const int rc = sqlite3_bind_text64(statement_.get(), parameter, bytes, text.size(),
                                     SQLITE_TRANSIENT, SQLITE_UTF8);
  if (rc != SQLITE_OK) throw db_->error(rc);
}

void SqliteStatement::bind_at(int parameter, std::int64_t value) {
  const int rc = sqlite3_bind_int64(statement_.get(), parameter, value);
  if (rc != SQLITE_OK) throw db_->error(rc);
}

void SqliteStatement::bind_at(int parameter, double value) {
  const int rc = sqlite3_bind_double(statement_.get(), parameter, value);
  if (rc != SQLITE_OK) throw db_->error(rc);
}

void SqliteStatement::bind_at(int parameter, std::nullptr_t) {
  const int rc = sqlite3_bind_null(statement_.get(), parameter);
  if (rc != SQLITE_OK) throw db_->error(rc);
}

bool SqliteStatement::step() {
  const int rc = sqlite3_step(statement_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) {
    const SqliteError error = db_->error(rc);
    reset();
    throw error;
  }
  reset();
  return false;
}

void SqliteStatement::run() {
  while (step()) continue;
}

void SqliteStatement::reset() noexcept {
  sqlite3_reset(statement_.get());
}

bool SqliteStatement::is_null(int column) const noexcept {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t SqliteStatement::integer(int column) const noexcept {
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteStatement::real(int column) const noexcept {
  return sqlite3_column_double(statement_.get(), column);
}

std::string_view SqliteStatement::text(int column) const noexcept {
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  const int length = sqlite3_column_bytes(statement_.get(), column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length)};
}

void SqliteDb::Close::operator()(sqlite3* db) const noexcept {
  sqlite3_close_v2(db);
}

SqliteDb::SqliteDb(std::string path, Mode mode, std::chrono::milliseconds busy_timeout)
    : path_(std::move(path)), busy_timeout_(busy_timeout) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= mode == Mode::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (mode == Mode::create) flags |= SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(as_plain_name(path_).c_str(), &raw, flags, nullptr);
  db_.reset(raw);
  if (rc != SQLITE_OK) {
    if (raw != nullptr && sqlite3_system_errno(raw) == ENOENT) {
      throw SqliteError({Code::absent, path_ + ": no such file"});
    }
    throw error(rc);
  }
  sqlite3_busy_timeout(raw, static_cast<int>(busy_timeout.count()));
  // What a syncer has read must survive power loss.
  exec("PRAGMA synchronous = FULL");
}

SqliteStatement SqliteDb::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int rc =
      sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (rc != SQLITE_OK) throw error(rc);
  return {this, statement};
}

void SqliteDb::exec(const std::string& sql) {
  const int rc = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) throw error(rc);
}

std::int64_t SqliteDb::integer(std::string_view sql) {
  SqliteStatement statement = prepare(sql);
  if (!statement.step())
    throw SqliteError({Code::internal, path_ + ": no row from: " + std::string(sql)});
  return statement.integer(0);
}

std::int64_t SqliteDb::changes() const noexcept {
  return sqlite3_changes64(db_.get());
}

bool SqliteDb::in_transaction() const noexcept {
  return sqlite3_get_autocommit(db_.get()) == 0;
}

bool SqliteDb::writable() const noexcept {
  return sqlite3_db_readonly(db_.get(), "main") == 0;
}

SqliteError SqliteDb::error(int code) const {
  if (db_ == nullptr) return SqliteError({Code::no_space, path_ + ": no memory for a connection"});
  const int extended = sqlite3_extended_errcode(db_.get());
  const int reported = extended == SQLITE_OK ? code : extended;
  const int primary = reported & 0xFF;
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
    return SqliteError({Code::busy, path_ + ": locked by another writer (waited " +
                                        std::to_string(busy_timeout_.count()) + " ms)"});
  }
  const int system = sqlite3_system_errno(db_.get());
  if ((primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR) && system != 0) {
    if (system == EISDIR) return SqliteError({Code::refused, path_ + ": is a folder"});
    // The first to open a write-ahead log makes files beside it, even to read.
    Status status = Status::from_errno(system, path_ + " (or its -wal, its -shm, their folder)");
    if (status.code() != Code::io_error) return SqliteError(std::move(status));
    return SqliteError({code_of(reported), status.message()});
  }
  return SqliteError({code_of(reported), path_ + ": " + sqlite3_errmsg(db_.get())});
}

SqliteTransaction::SqliteTransaction(SqliteDb& db, Kind kind) : db_(db) {
  db_.exec(kind == Kind::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

SqliteTransaction::~SqliteTransaction() {
  if (!open_ || !db_.in_transaction()) return;
  try {
    db_.exec("ROLLBACK");
  } catch (const SqliteError&) {
    // The connection is of no use any more, and closing it rolls back.
  }
}

void SqliteTransaction::commit() {
  db_.exec("COMMIT");
  open_ = false;
}

}  // namespace fingerpost
