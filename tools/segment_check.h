// Compares a segment with its directory: every entry both ways, every bucket or hash word, every
// shard.
//
// Both move on meanwhile. The directory is read at one version, in one transaction; the segment is
// given time to serve that version; and of what differs then, only what the directory has not
// changed again by the end counts. So a difference is one at a time when there should be none, also
// beside a busy writer. Of a deleted entry the segment does not say which shard it was on; state
// and epoch are compared.
//
// Memory: eight bytes per entry, and the differences.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/reader.h"
#include "syncer/source.h"

namespace fingerpost {

enum class DifferenceKind : std::uint8_t { directory, version, layout, shard, bucket, hash, entry };

// "directory", "version", … Static lifetime.
std::string_view to_string(DifferenceKind kind) noexcept;

struct Difference {
  DifferenceKind kind = DifferenceKind::entry;
  std::string id;         // the tenant, "bucket:N", "hash:N", the shard; empty for the first three
  std::string directory;  // what the directory says, as text; empty: it has none
  std::string segment;    // what the segment says
  std::string why;        // where something is known of it
};

struct CheckReport {
  std::uint64_t directory_version = 0;  // at which both were compared
  std::uint64_t segment_version = 0;    // served when that was done
  std::uint64_t entries = 0;            // of the directory, overrides
  std::uint64_t fallback_words = 0;  // buckets of the directory that have a shard, or its hash list
  std::uint64_t shards = 0;
  std::uint64_t changed_meanwhile =
      0;  // differences that do not count, since the directory went on
  // What the segment's syncer set aside: rows that cannot be applied, changes that wait for an
  // approval. Each of them differs.
  std::uint64_t quarantined = 0;
  std::uint64_t withheld = 0;
  std::vector<Difference> differences;
};

// `wait`: for the segment to serve the directory's version. Errors of the source as it gives them ·
// unavailable: generations or histories changed during every attempt
Result<CheckReport> check_segment(Source& source, const Reader& reader,
                                  std::chrono::nanoseconds wait);

}  // namespace fingerpost
