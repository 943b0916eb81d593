// A segment as its one writer holds it: file, locks, mapping and the writer over its bytes.
//
// The caller holds the name's WriterLock as long as this object lives. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "shm/file_identity.h"
#include "shm/mapping.h"
#include "shm/memory_budget.h"
#include "shm/segment_create.h"
#include "shm/segment_header.h"
#include "shm/segment_writer.h"
#include "shm/writer_lock.h"

namespace fingerpost {

class OwnedSegment {
 public:
  // A new, empty segment without its name yet; if it goes away unpublished, so does its file. The
  // fixed part is reserved. Codes as HalfMadeSegment::create and MemoryBudget::reserve give them.
  static Result<std::unique_ptr<OwnedSegment>> create(const std::string& path,
                                                      const SegmentAccess& access,
                                                      const SegmentIdentity& identity);

  // The segment under the name, as an earlier writer left it. `directory_id`: whose it must be, if
  // that is known. absent · not_permitted · wrong_owner · busy (another writer holds it) ·
  // other_directory (both ids named) · not_ready, other_layout, corrupt, conflict (superseded): it
  // is of no use, a successor may replace it
  static Result<std::unique_ptr<OwnedSegment>> adopt(
      const std::string& path, const SegmentAccess& access,
      const std::optional<DirectoryId>& directory_id);

  // Completes a created segment and gives it its name: where nothing has it (conflict otherwise),
  // or in the place of its predecessor.
  Status publish_first();
  Status publish_successor();

  SegmentWriter<StdAtomics>& writer() { return *writer_; }
  const SegmentIdentity& identity() const { return identity_; }
  const std::string& path() const { return path_; }

  // What the name means now. One system call.
  NameState name() const { return name_state(path_, file_); }

  // Keeps what is allocated by now out of swap, for all who map it; holes are not touched, and what
  // is allocated later needs another call. no_space, not_permitted: beyond this process's limit
  Status lock_memory();

  // For the heartbeat: owner, group and mode are what is configured, or are put back. What it had
  // if that had to be done, as text; else empty. not_permitted: it cannot be done
  Result<std::string> hold_access(const SegmentAccess& access);

  // Whether the file is as long as it ever was. One system call, before anything is touched: what
  // lies behind the end of a file that was cut kills whoever touches it. corrupt: it was cut
  Status check_length();

  // Tries for the lock on the segment itself again, where a worker's read lock was in the way.
  // busy: another writer.
  Status hold_lock();

 private:
  OwnedSegment(std::string path, SegmentIdentity identity, WriteMapping mapping)
      : path_(std::move(path)), identity_(identity), mapping_(std::move(mapping)) {}

  int fd() const { return half_made_ ? half_made_->fd() : fd_.get(); }
  SegmentMemory<StdAtomics, true> memory() const { return {mapping_.data(), identity_.plan}; }
  Status publish(Status (HalfMadeSegment::*give_name)());
  // Of one that is adopted: that the file holds what is said to be allocated.
  Status check_allocated();
  // How the writer gets more of a half.
  Reserve reserve();

  std::string path_;
  SegmentIdentity identity_;
  WriteMapping mapping_;
  MemoryBudget budget_;
  std::optional<HalfMadeSegment> half_made_;  // until publish()
  UniqueFd fd_;                               // from then on
  FileIdentity file_;
  std::uint64_t length_ = 0;  // of the file, the most there was
  std::optional<SegmentWriter<StdAtomics>> writer_;
  std::uint64_t locked_[3] = {0, 0, 0};  // bytes from the start of the fixed part and of each half
};

}  // namespace fingerpost
