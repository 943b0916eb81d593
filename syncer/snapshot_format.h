// The snapshot file, format 2; format 1, which has no split tenants, is read as well. Every byte is
// covered by a digest (XXH3-64), every number is little-endian.
//
//   header    4,096 bytes   who it is of, at which version, and how long every part is
//   blocks    1 MiB each    records; the last block ends where its records end
//   meta      any length    digest, then layout and topology
//   trailer   64 bytes      totals, and a digest over all other digests
//
// header    0 magic · 8 u32 format · 12 u32 zero · 16 directory id · 32 u64 incarnation · 40 u64
// version ·
//           48 u64 nonce · 56 u64 replay_from · 64 i64 last successful sync (unix ns) · 72 u64
//           bytes of all blocks · 80 u64 bytes of meta · 88 u64 entries · 96 u64 tombstones · 104
//           u64 parts of all split tenants · 112 u64 seed of the table it was scanned from, 0 if
//           none · 120 zeros · 4,088 digest
// block     0 digest of the rest · 8 u32 magic · 12 u32 used bytes, this head included · 16 u64
// ordinal ·
//           24 u32 records · 28 u32 zero · 32 records, then zeros to the end of the block
// record    0 u8 kind · 1 u8 state · 2 u16 id bytes · 4 u32 shard · 8 u32 target · 12 u64 epoch ·
// 20 id.
//           A bucket's id is its number as u32; a tombstone's epoch is the version of the removal.
//           A split tenant has its number of parts as shard, no target, and behind its id: u64 read
//           at · of each part 0 u8 state · 1 u32 shard · 5 u32 target · 9 u64 epoch
// trailer   0 digest of the rest · 8 magic · 16 u64 bytes of all blocks · 24 u64 entries · 32 u64
// tombstones ·
//           40 u64 chain · 48 u64 version · 56 zeros
// chain     starts at 0; each digest d of a block, then of meta, then of the header makes it
//           XXH3-64(chain, d)
//
// A scan's records lie in the order of their index hashes under that seed, in a table of any size:
// loaded under the same seed they go to memory in one sweep.
//
// A snapshot of a live table is its scan plus the tail of what was applied meanwhile: of several
// records of one id the one with the highest epoch (of a split: read at) holds, whatever their
// order. Version and totals
// are known at the end only, so the header is written last; it counts only together with the
// trailer.
//
// Functions of values: no I/O. Decoding bounds every length before it allocates or follows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shm/status.h"
#include "shm/tenant_id.h"
#include "syncer/batch.h"

namespace fingerpost {

inline constexpr std::uint32_t kSnapshotFormat = 2;
inline constexpr std::uint32_t kSnapshotFormatMin = 1;
inline constexpr std::size_t kSnapshotHeaderBytes = 4'096;  // a page, so that blocks begin on one
inline constexpr std::size_t kSnapshotBlockBytes = 1 << 20;
inline constexpr std::size_t kSnapshotBlockHeadBytes = 32;
inline constexpr std::size_t kSnapshotRecordHeadBytes = 20;
inline constexpr std::size_t kSnapshotPartBytes = 17;
inline constexpr std::size_t kSnapshotTrailerBytes = 64;
inline constexpr std::uint64_t kSnapshotMetaBytesMax =
    256 << 20;  // some 1,300 shards with every field full
inline constexpr std::uint64_t kSnapshotBlocksBytesMax = 1ULL << 50;
inline constexpr std::size_t kSnapshotIdBytesMax = 10 + kIdBytesMax;  // "part:1023:" and an id
inline constexpr std::uint32_t kNoSnapshotShard = 0xFFFF'FFFF;

struct SnapshotHeader {
  std::uint32_t format = kSnapshotFormat;
  DirectoryId directory_id{};
  std::uint64_t incarnation = 0;
  Cursor cursor;
  std::uint64_t replay_from = 0;
  std::int64_t last_sync_unix_ns = 0;
  std::uint64_t blocks_bytes = 0;
  std::uint64_t meta_bytes = 0;
  std::uint64_t entries = 0;  // entry and bucket records; an id may be among them more than once
  std::uint64_t tombstones = 0;
  std::uint64_t parts = 0;  // of all records of split tenants
  std::uint64_t seed = 0;   // of the table that was scanned; 0: not known

  std::uint64_t blocks() const {
    return (blocks_bytes + kSnapshotBlockBytes - 1) / kSnapshotBlockBytes;
  }
  std::uint64_t meta_offset() const { return kSnapshotHeaderBytes + blocks_bytes; }
  std::uint64_t trailer_offset() const { return meta_offset() + meta_bytes; }
  std::uint64_t file_bytes() const { return trailer_offset() + kSnapshotTrailerBytes; }
};

// What a snapshot says of the directory besides its records. Records name shards by their place in
// `topology`.
struct SnapshotMeta {
  DirectoryLayout layout;
  std::vector<ShardSpec> topology;
};

enum class RecordKind : std::uint8_t { entry = 1, bucket = 2, tombstone = 3, split = 4 };

struct SnapshotPart {
  std::uint8_t state = 0;
  std::uint32_t shard = kNoSnapshotShard;
  std::uint32_t target = kNoSnapshotShard;
  std::uint64_t epoch = 0;

  bool operator==(const SnapshotPart&) const = default;
};

struct SnapshotRecord {
  RecordKind kind = RecordKind::entry;
  std::uint8_t state = 0;                  // the segment's own code; 0 in a tombstone
  std::uint32_t shard = kNoSnapshotShard;  // place in the topology, or kNoSnapshotShard
  std::uint32_t target = kNoSnapshotShard;
  std::uint64_t epoch = 0;  // of a tombstone: the version of the removal
  std::string_view id;      // empty for a bucket
  std::uint32_t bucket = 0;
  std::uint64_t read_at = 0;        // these two of a split tenant only
  std::vector<SnapshotPart> parts;  // 2 to kPartsMax
};

// Folds a part's digest into the digest over all of them.
std::uint64_t chain_digest(std::uint64_t chain, std::uint64_t digest) noexcept;
// The digest that stands at the head of a block or of meta. `part` holds at least 8 bytes.
std::uint64_t leading_digest(std::span<const std::byte> part) noexcept;

// `out` is kSnapshotHeaderBytes long. Returns the header's digest.
std::uint64_t encode_header(const SnapshotHeader& header, std::span<std::byte> out);
// other_layout for another format, corrupt for everything else. `digest` is the header's own.
Result<SnapshotHeader> decode_header(std::span<const std::byte> bytes, std::uint64_t& digest);

// Refused where a name, field or list is longer than the format's bounds.
Result<std::vector<std::byte>> encode_meta(const SnapshotMeta& meta);
Result<SnapshotMeta> decode_meta(std::span<const std::byte> bytes, const DirectoryId& id);

// `out` is kSnapshotTrailerBytes long.
void encode_trailer(const SnapshotHeader& header, std::uint64_t chain, std::span<std::byte> out);
// Whether `bytes` is the trailer of exactly this header and chain.
Status check_trailer(std::span<const std::byte> bytes, const SnapshotHeader& header,
                     std::uint64_t chain);

// Fills one block in place. `block` is kSnapshotBlockBytes long and outlives the builder.
class BlockBuilder {
 public:
  explicit BlockBuilder(std::span<std::byte> block) : block_(block) {}

  // false: it does not fit, seal this block and begin another. The id is 1 to kSnapshotIdBytesMax
  // bytes.
  bool append(const SnapshotRecord& record) noexcept;
  std::uint32_t records() const { return records_; }
  // Completes the block: `last` cuts it after its records, else zeros fill it. The bytes to be
  // written.
  std::span<const std::byte> seal(std::uint64_t ordinal, bool last) noexcept;

 private:
  std::span<std::byte> block_;
  std::size_t used_ = kSnapshotBlockHeadBytes;
  std::uint32_t records_ = 0;
};

// The records of one block that decode_block found good. Views point into the block's bytes.
class BlockView {
 public:
  BlockView() = default;
  std::uint32_t records() const { return records_; }
  std::uint32_t tombstones() const { return tombstones_; }  // of those
  std::uint64_t parts() const { return parts_; }            // of those of split tenants
  bool next(SnapshotRecord& record) noexcept;

 private:
  friend Result<BlockView> decode_block(std::span<const std::byte>, std::uint64_t, std::uint32_t);
  const std::byte* at_ = nullptr;
  std::uint32_t records_ = 0;
  std::uint32_t tombstones_ = 0;
  std::uint64_t parts_ = 0;
  std::uint32_t left_ = 0;
};

// Checks digest, place and every record of a block; records may name shards below `shard_count`.
Result<BlockView> decode_block(std::span<const std::byte> block, std::uint64_t ordinal,
                               std::uint32_t shard_count);

}  // namespace fingerpost
