// The first bytes of a segment's file: whose it is, and whether this build can read it. Written
// once by the creator; every opener, worker or next writer, judges them here and nowhere else.
#pragma once

#include <string>

#include "shm/boot_clock.h"
#include "shm/directory_id.h"
#include "shm/segment_memory.h"
#include "shm/status.h"

namespace fingerpost {

struct SegmentIdentity {
  DirectoryId directory_id{};
  BootId boot_id{};
  SegmentPlan plan;
};

// Writes all but `complete` into zeroed memory.
void write_header(FileHeader<StdAtomics>& header, const SegmentIdentity& identity) noexcept;

// Stores `complete`: from here on the segment may be opened. Nothing is stored to the header after
// it.
void store_complete(FileHeader<StdAtomics>& header) noexcept;

// Reads the header through the descriptor, so that a file of any size and content is safe to ask.
// `path` is for messages. not_ready: not complete, or of another boot · other_layout: the message
// says what differs · corrupt: its offsets make no sense, or the file ends before what they promise
Result<SegmentIdentity> read_header(int fd, const std::string& path);

}  // namespace fingerpost
