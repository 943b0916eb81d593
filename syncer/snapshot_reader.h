// Reads one snapshot file. Blocks are read ahead, many at a time, and each is checked before it is
// given out, so that a loader inserts one while the next ones are on their way.
//
//   open → next_block* → finish
//
// Only finish() accepts: what was taken from blocks before must be thrown away where it, or any
// call before it, fails. One thread owns a reader.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shm/status.h"
#include "shm/unique_fd.h"
#include "syncer/snapshot_format.h"
#include "syncer/snapshot_io.h"

namespace fingerpost {

struct SnapshotInfo {
  std::string path;
  SnapshotHeader header;
  SnapshotMeta meta;
};

class SnapshotReader {
 public:
  // Checks header, length and meta; blocks and trailer come later. absent, not_permitted,
  // other_layout (another format), corrupt, io_error.
  static Result<std::unique_ptr<SnapshotReader>> open(const std::string& path,
                                                      const IoOptions& options);
  // The same over an io of the caller's.
  static Result<std::unique_ptr<SnapshotReader>> open(const std::string& path,
                                                      std::unique_ptr<SnapshotIo> io);

  const SnapshotInfo& info() const { return info_; }

  // The next block, in the file's order; its views are valid until the next call. false: no more.
  Result<bool> next_block(BlockView& block);
  // Whether the snapshot as a whole is what its trailer says. Before the last block: internal.
  Status finish();

  // All zero before the first block.
  IoStats io_stats() const { return io_ == nullptr ? IoStats{} : io_->stats(); }

 private:
  SnapshotReader(std::string path, const IoOptions& options) : options_(options) {
    info_.path = std::move(path);
  }

  Status read_frame();
  Status read_exactly(std::uint64_t offset, std::span<std::byte> out);
  Status fault(const Status& status) const;
  void read_ahead();

  struct Arrived {
    IoBuffer buffer;
    std::size_t bytes = 0;
  };

  SnapshotInfo info_;
  IoOptions options_;
  UniqueFd file_;
  // Made for the first block, since looking at a header needs no ring; goes before the file it
  // reads.
  std::unique_ptr<SnapshotIo> io_;
  std::vector<std::byte> trailer_;
  std::uint64_t header_digest_ = 0;
  std::uint64_t meta_digest_ = 0;
  std::uint64_t asked_ = 0;  // blocks
  std::uint64_t given_ = 0;
  std::uint64_t chain_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t tombstones_ = 0;
  std::uint64_t parts_ = 0;
  std::vector<Arrived> window_;  // block n waits for its turn at n mod depth
  IoBuffer current_;
};

// Header and meta of a file, without its blocks: what it says, not that it holds.
Result<SnapshotInfo> inspect_snapshot(const std::string& path);

struct SnapshotVerdict {
  SnapshotInfo info;
  IoStats io;
};
// The whole file, every byte.
Result<SnapshotVerdict> verify_snapshot(const std::string& path, const IoOptions& options);

}  // namespace fingerpost
