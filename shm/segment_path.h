// Where the segment of a directory lies: from a name to a path.
//
// A bare name is looked up in $FINGERPOST_RUNDIR, then /run/fingerpost, then /dev/shm, as
// `fingerpost.<name>`; whatever contains a slash is a path and needs no looking up. From layout 2
// on the file name ends in `.l<layout>`, so that both builds of an upgrade can run side by side.
//
// Thread-safety: any thread; the environment is read, so nobody may change it meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shm/status.h"

namespace fingerpost {

inline constexpr std::size_t kSegmentNameBytesMax = 64;

// Why `name` cannot be the bare name of a segment, as the end of a sentence, or nullopt if it can:
// 1 to 64 of [A-Za-z0-9._-], no leading dot, and no ending that a helper file or another layout
// has.
std::optional<std::string_view> why_not_segment_name(std::string_view name) noexcept;

// The folders of a bare name, in the order of their precedence.
struct SegmentFolders {
  std::string configured;  // $FINGERPOST_RUNDIR; empty: not configured
  std::string packaged = "/run/fingerpost";
  std::string common = "/dev/shm";

  static SegmentFolders of_this_process();
};

// The path a reader opens: in the first folder that holds the file. A folder that may not be
// searched ends the search, since a file in a later one would be the wrong one. absent: no folder
// has it (the message lists the paths) · not_permitted · refused: no name or path
Result<std::string> path_to_read(std::string_view name_or_path, unsigned layout,
                                 const SegmentFolders& folders = SegmentFolders::of_this_process());

// The path a writer creates or adopts: in the configured folder, else in the packaged one if there
// is such a folder, else in the common one. refused: no name or path
Result<std::string> path_to_write(
    std::string_view name_or_path, unsigned layout,
    const SegmentFolders& folders = SegmentFolders::of_this_process());

// The helpers beside a segment: the file whose lock makes one process the writer, what this host's
// administrator lets its poison guard pass, and the half-made segment before it gets its name.
std::string lock_path(const std::string& segment_path);
std::string approval_path(const std::string& segment_path);
std::string half_made_path(const std::string& segment_path);

}  // namespace fingerpost
