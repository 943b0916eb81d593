// A connection to an SQLite file, its statements and its transactions: the only files that know
// sqlite3.h are this pair. The directory's source reads through it, the administrator's verbs write
// through it.
//
// Not thread-safe: one thread at a time per SqliteDb and what came from it. Errors are thrown as
// SqliteError. Every wait for another writer is bounded by the connection's busy timeout.
//
// Never open and close the database's file beside SQLite in the same process: closing any
// descriptor of it drops the locks that SQLite holds. stat() is fine.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "shm/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace fingerpost {

// What SQLite refused. The Status's code: busy (another writer held the lock beyond the timeout),
// absent, not_permitted, no_space, corrupt, io_error, conflict (a key that exists), refused (a file
// that is no database, another constraint, or a trigger, whose own message follows), else internal.
class SqliteError : public std::runtime_error {
 public:
  explicit SqliteError(Status status)
      : std::runtime_error(status.message()), status_(std::move(status)) {}
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

// The path in "sqlite:PATH" or a plain PATH. Refused for an empty one and for every other scheme.
Result<std::string> sqlite_path_of_url(std::string_view url);

// A prepared statement. Parameters count from 1, columns from 0. Must not outlive its SqliteDb.
class SqliteStatement {
 public:
  // Ends the run before, if any, and binds the parameters from the first on. Text is copied.
  template <class... Values>
  SqliteStatement& bind(const Values&... values) {
    reset();
    int at = 0;
    (bind_at(++at, values), ...);
    return *this;
  }
  void bind_at(int parameter, std::string_view text);
  void bind_at(int parameter, const char* text) { bind_at(parameter, std::string_view(text)); }
  void bind_at(int parameter, std::int64_t value);
  void bind_at(int parameter, double value);
  void bind_at(int parameter, std::nullptr_t);
  template <std::integral Integer>
  void bind_at(int parameter, Integer value) {
    bind_at(parameter, static_cast<std::int64_t>(value));
  }

  // true: the columns of a row can be read until the next step. false: done, and reset.
  bool step();
  // Runs to the end; rows are passed over.
  void run();
  void reset() noexcept;

  bool is_null(int column) const noexcept;
  std::int64_t integer(int column) const noexcept;
  std::uint64_t number(int column) const noexcept {
    return static_cast<std::uint64_t>(integer(column));
  }
  double real(int column) const noexcept;
  std::string_view text(int column) const noexcept;  // empty for NULL; valid until the next step

 private:
  friend class SqliteDb;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept;
  };
  SqliteStatement(class SqliteDb* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}

  class SqliteDb* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class SqliteDb {
 public:
  enum class Mode { read_only, read_write, create };

  static constexpr std::chrono::milliseconds kBusyTimeout{5'000};

  // read_write opens for reading where the file may not be written, as SQLite does; see writable().
  SqliteDb(std::string path, Mode mode, std::chrono::milliseconds busy_timeout = kBusyTimeout);
  SqliteDb(const SqliteDb&) = delete;
  SqliteDb& operator=(const SqliteDb&) = delete;

  SqliteStatement prepare(std::string_view sql);
  // Runs every statement of `sql`; rows are passed over.
  void exec(const std::string& sql);
  // The first column of the first row, which must exist.
  std::int64_t integer(std::string_view sql);

  std::int64_t changes()
      const noexcept;  // rows changed by the last statement, triggers not counted
  bool in_transaction() const noexcept;
  bool writable() const noexcept;
  const std::string& path() const noexcept { return path_; }

  // The error that SQLite reported last, as thrown.
  SqliteError error(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const noexcept;
  };

  std::string path_;
  std::chrono::milliseconds busy_timeout_;
  std::unique_ptr<sqlite3, Close> db_;
};

// Rolled back unless committed. `write` takes the write lock at once, so that nothing read inside
// can change before it is acted on; `read` sees one state of the database from its first SELECT to
// its end.
class SqliteTransaction {
 public:
  enum class Kind { read, write };

  SqliteTransaction(SqliteDb& db, Kind kind);
  ~SqliteTransaction();
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;

  void commit();

 private:
  SqliteDb& db_;
  bool open_ = true;
};

}  // namespace fingerpost
