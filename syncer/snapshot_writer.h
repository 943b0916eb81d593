// Writes one snapshot file, piece by piece, while its owner does other things in between.
//
// The records go to `<directory>/<name>.fps.new`; only a file that is complete and on the disk gets
// its name, `<name>-<incarnation>-<version>.fps`, by a rename that is synced as well. Whatever
// fails, whatever is aborted or forgotten: no file under that name, none beside it, and files there
// before are untouched.
//
//   create → append* → seal → poll until it says done
//
// One thread owns a writer. append, seal and poll(false) do not wait for the disk as long as
// would_wait() is false: a full block is handed to SnapshotIo, and another buffer is filled.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shm/status.h"
#include "shm/unique_fd.h"
#include "syncer/snapshot_format.h"
#include "syncer/snapshot_io.h"

namespace fingerpost {

// What is known only when the last record was appended.
struct SnapshotEnd {
  Cursor cursor;
  std::uint64_t replay_from = 0;
  std::int64_t last_sync_unix_ns = 0;
  std::uint64_t seed = 0;  // of the table that was scanned; 0: none was
  SnapshotMeta meta;  // every shard that a record names lies in its topology
};

class SnapshotWriter {
 public:
  // `name` is the directory's on this host; only one writer per directory and name lives at a time.
  static Result<std::unique_ptr<SnapshotWriter>> create(const std::string& directory,
                                                        const std::string& name,
                                                        const DirectoryId& directory_id,
                                                        std::uint64_t incarnation,
                                                        std::unique_ptr<SnapshotIo> io);
  // Aborts what is not done.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  // Ids are 1 to kSnapshotIdBytesMax bytes, else refused. After an error every further call repeats
  // it.
  Status append_entry(std::string_view id, std::uint8_t state, std::uint32_t shard,
                      std::uint32_t target, std::uint64_t epoch);
  Status append_bucket(std::uint32_t bucket, std::uint8_t state, std::uint32_t shard,
                       std::uint32_t target, std::uint64_t epoch);
  Status append_tombstone(std::string_view id, std::uint64_t version);
  Status append(const SnapshotRecord& record);

  // Whether the next full block would find every buffer on its way to the disk.
  bool would_wait();

  // No record comes after this.
  Status seal(const SnapshotEnd& end);
  // After seal: goes on with what is left. true: the file is durable under path().
  Result<bool> poll(bool wait);
  // seal, then poll to the end.
  Status finish(const SnapshotEnd& end);
  // Ends it without a file; one that has its name already keeps it.
  void abort();

  // The published file; empty before.
  const std::string& path() const { return path_; }
  std::uint64_t records() const { return header_.entries + header_.tombstones; }
  const IoStats& io_stats() const { return io_->stats(); }

 private:
  enum class Stage : std::uint8_t { open, writing, syncing, syncing_folder, done, failed };

  SnapshotWriter(std::string directory, std::string name, std::unique_ptr<SnapshotIo> io);

  Status open_file();
  Status write_block(bool last);
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  Status make_room();
  Status settle(IoResult& result);
  Status advance();
  Status publish();
  Status fail(Status status);

  std::string directory_;
  std::string name_;
  std::string temporary_;
  std::string path_;
  UniqueFd file_;
  UniqueFd folder_;
  std::unique_ptr<SnapshotIo> io_;  // goes before the descriptors it still writes to
  Stage stage_ = Stage::open;
  Status failure_;
  SnapshotHeader header_;
  IoBuffer block_;
  BlockBuilder builder_{{}};
  std::uint64_t blocks_ = 0;
  std::uint64_t chain_ = 0;
  std::uint32_t shards_named_ = 0;  // one more than the highest shard in a record
};

// The names of a snapshot's files. `name` keeps apart the directories of a host in one state
// directory.
std::string snapshot_file_name(std::string_view name, std::uint64_t incarnation,
                               std::uint64_t version);
std::string snapshot_temporary_name(std::string_view name);

}  // namespace fingerpost
