// One segment, mapped read-only. A Reader keeps every one it ever mapped until it goes away itself.
// Thread-safety: immutable but for the two marks.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "shm/file_identity.h"
#include "shm/mapping.h"
#include "shm/segment_header.h"
#include "shm/segment_open.h"
#include "shm/segment_writer.h"

namespace fingerpost {

class MappedSegment {
 public:
  // Codes as open_to_read, read_header and ReadMapping::map give them.
  static Result<std::unique_ptr<MappedSegment>> open(const std::string& path,
                                                     const TrustedOwners& trusted);

  const SegmentMemory<StdAtomics, false>& memory() const noexcept { return memory_; }
  const ControlBlock<StdAtomics>& control() const noexcept { return memory_.control(); }
  const SegmentIdentity& identity() const noexcept { return identity_; }
  const FileIdentity& file() const noexcept { return file_; }

  bool superseded() const noexcept {
    return root_superseded(memory_.root().load(kAcquire));
  }  // pairs: root
  // The position in the directory's history; nullopt only if the writer disturbs every attempt.
  std::optional<Position> position() const noexcept;

  // True for one caller only: the one resolve that may open the successor.
  bool claim_successor() noexcept {
    return !successor_claimed_.load() && !successor_claimed_.exchange(true);
  }

  std::unique_ptr<MappedSegment> older;  // what the reader had mapped before; only ever added

 private:
  MappedSegment(ReadMapping mapping, const SegmentIdentity& identity,
                const FileIdentity& file) noexcept
      : mapping_(std::move(mapping)),
        identity_(identity),
        file_(file),
        memory_(mapping_.data(), identity_.plan) {}

  ReadMapping mapping_;
  SegmentIdentity identity_;
  FileIdentity file_;
  SegmentMemory<StdAtomics, false> memory_;
  std::atomic<bool> successor_claimed_{false};
};

}  // namespace fingerpost
