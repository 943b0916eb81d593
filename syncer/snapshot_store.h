// The snapshots of one directory on this host: a folder that keeps the last few.
//
// What counts is content. The name of a file says nothing that its header does not say again; the
// newest is the one with the highest (incarnation, version) inside. Nothing is removed that was not
// read from end to end and found good, and only while enough newer ones were found good too: a full
// disk or a bad cable must never make us remove the last thing that can be read. What cannot be
// read stays, and is named.
//
// Used by one thread of one process, who holds the segment's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shm/status.h"
#include "syncer/snapshot_reader.h"
#include "syncer/snapshot_writer.h"

namespace fingerpost {

inline constexpr std::size_t kSnapshotsKept = 3;

struct SnapshotFault {
  std::string path;
  Status why;
};

struct SnapshotListing {
  std::vector<SnapshotInfo> good;     // header and meta are; newest first
  std::vector<SnapshotFault> faults;  // named like ours, and not acceptable
};

// What `directory` holds under `name`, by any process, at any time. Fails only where the folder
// cannot be read.
Result<SnapshotListing> list_snapshots(const std::string& directory, const std::string& name);

class SnapshotStore {
 public:
  // Makes the folder where it lacks (its parent must exist), and removes what a writer that died
  // left half-written under `name`.
  static Result<std::unique_ptr<SnapshotStore>> open(std::string directory, std::string name,
                                                     IoOptions io);

  // Snapshots of directory `id`, newest first; of others there is a fault (other_directory). A
  // loader takes them in this order, until finish() of one accepts.
  Result<SnapshotListing> candidates(const DirectoryId& id) const;
  Result<std::unique_ptr<SnapshotReader>> read(const std::string& path) const;

  // Begins the next one, in a folder made anew if it is gone. Nothing is remembered of one that
  // failed before.
  Result<std::unique_ptr<SnapshotWriter>> write(const DirectoryId& id, std::uint64_t incarnation);

  // After a snapshot was published: removes the snapshots of directory `id` beyond kSnapshotsKept.
  // Reads what it has not verified yet, a block per call; true: there is more to do.
  Result<bool> retain_step(const DirectoryId& id);
  // All of it.
  Status retain(const DirectoryId& id);

  // Whether the folder was removed, and with it what was written. One system call.
  bool is_gone() const;

  const std::string& directory() const { return directory_; }

 private:
  // A file as it was when it was found good or bad; another size, time or inode is another file.
  struct Known {
    std::string path;
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    std::int64_t modified_ns = 0;
    bool good = false;

    bool same_file(const Known& other) const {
      return path == other.path && inode == other.inode && size == other.size &&
             modified_ns == other.modified_ns;
    }
  };

  SnapshotStore(std::string directory, std::string name, IoOptions io)
      : directory_(std::move(directory)), name_(std::move(name)), io_(io) {}

  static Result<Known> stamp_of(const std::string& path);
  Status verify_step();
  Status begin_retention(const DirectoryId& id);

  std::string directory_;
  std::string name_;
  IoOptions io_;
  std::vector<Known> known_;
  std::vector<std::string> unverified_;  // of this retention, oldest last
  std::vector<std::string> in_order_;    // of this retention, newest first
  bool retaining_ = false;
  std::unique_ptr<SnapshotReader> verifying_;
  Known verifying_stamp_;
};

}  // namespace fingerpost
