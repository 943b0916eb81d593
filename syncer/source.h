// Where a directory comes from. A source only reads; every read is one transaction, and says at which
// version it was made. Not thread-safe: the syncer's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shm/status.h"
#include "syncer/batch.h"

namespace fingerpost {

// A read of the whole directory at one version, in slices: the transaction stays open as long as this
// object lives, beside whatever the Source does meanwhile.
class FullRead {
 public:
  virtual ~FullRead() = default;

  const Cursor& end() const { return end_; }
  const DirectoryLayout& layout() const { return layout_; }
  const std::vector<ShardSpec>& topology() const { return topology_; }
  std::uint64_t row_count() const { return row_count_; }  // about so many entries will be in the table
  std::uint64_t part_count() const { return part_count_; }  // of all split tenants

  // The next row into `row` (views valid until the next call). false: no more. Rows come in no promised order;
  // neither parts nor the own rows of split tenants are among them, unless these are DELETED.
  virtual Result<bool> next(EntryRow& row) = 0;
  // After the last row, the next split tenant that is not DELETED into `split`. As above.
  virtual Result<bool> next_split(SplitRow& split) = 0;

 protected:
  Cursor end_;
  DirectoryLayout layout_;
  std::vector<ShardSpec> topology_;
  std::uint64_t row_count_ = 0;
  std::uint64_t part_count_ = 0;
};

class Source {
 public:
  virtual ~Source() = default;

  // "sqlite", for status and logs.
  virtual std::string_view kind() const = 0;

  // Opens or reopens whatever is needed, and reads the layout. Unavailable while it does not answer;
  // absent if there is no directory; refused if it is not one of ours (the message says what is missing).
  virtual Result<DirectoryLayout> read_layout() = 0;

  // Cheap: false only if nothing can have been committed since the last successful read_changes.
  virtual Result<bool> may_have_changed() = 0;

  // Everything since `from` (and since `replay_from`, if that is lower), in one transaction.
  virtual Result<std::unique_ptr<Batch>> read_changes(const Cursor& from, std::uint64_t replay_from) = 0;

  virtual Result<std::unique_ptr<FullRead>> read_all() = 0;

  // A descriptor that becomes readable when something may have changed, or -1. A hint, never a promise.
  virtual int watch_fd() const { return -1; }
  // Empties the descriptor.
  virtual void drain_watch() {}
};

// `url`: "sqlite:PATH" or a plain path. Refused for any other scheme.
Result<std::unique_ptr<Source>> open_source(const std::string& url);

}  // namespace fingerpost
