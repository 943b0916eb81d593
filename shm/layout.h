// What lies in the segment, byte for byte. The only place that says so; shm/LAYOUT.md draws it.
//
// Everything shared is a 64-bit word (wait words: 32 bits), naturally aligned, accessed under the
// one ordering rule of shm/atomics.h. References are offsets; no word is a pointer. A change here
// is a new layout version: one commit with this file, tests/layout_test.cpp and the history in
// shm/LAYOUT.md.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "shm/atomics.h"
#include "shm/pair_cell.h"

namespace fingerpost {

inline constexpr std::uint64_t kMagic = 0x54534F5052474E46;  // "FNGRPOST" as bytes
inline constexpr std::uint32_t kLayoutVersion = 1;
inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kWordBytes = 8;
inline constexpr unsigned kGroupSlots = 16;
inline constexpr std::uint64_t kProbeGroupsMax =
    64;  // of one lookup; a chain beyond it asks for another seed
inline constexpr std::uint32_t kBucketsMax = 1U << 20;  // buckets, or shards of the hash fallback
inline constexpr std::uint64_t kFileHeaderBytes = 4'096;
inline constexpr std::uint64_t kTableHeaderBytes = 4'096;

// --- slot
// -----------------------------------------------------------------------------------------------------
// header: sequence 63..16 (odd while the slot is rewritten for another id) · id length 15..8 ·
// spare 7..0 id: the bytes zero-padded; of an id longer than kInlineIdBytes the first
// kLongIdInlineBytes, and in the last word the offset (in words, from the start of the records) of
// the rest.
template <class A>
struct Slot {
  typename A::Word route;            //  0: shm/route_word.h
  typename A::Word header;           //  8
  typename A::Word id[A::kIdWords];  // 16
};
static_assert(sizeof(Slot<StdAtomics>) == kLineBytes);
static_assert(offsetof(Slot<StdAtomics>, header) == 8 && offsetof(Slot<StdAtomics>, id) == 16);

inline constexpr std::size_t kInlineIdBytes = StdAtomics::kIdWords * kWordBytes;  // 48
inline constexpr std::size_t kLongIdInlineBytes = kInlineIdBytes - kWordBytes;    // 40

// Fingerprints of sixteen slots: shm/group_scan.h.
template <class A>
struct Group {
  typename A::Word low;   // 0: positions 0 to 7
  typename A::Word high;  // 8: positions 8 to 15
};
static_assert(sizeof(Group<StdAtomics>) == kGroupSlots);

// --- a generation: header, groups, slots, fallback words, records
// ---------------------------------------------
enum class FallbackKind : std::uint64_t { none = 0, buckets = 1, hash = 2 };

template <class A>
struct TableHeader {
  // Line 0: what every lookup reads.
  typename A::Word seed;            //  0: of index_hash in this generation
  typename A::Word group_count;     //  8
  typename A::Word probe_limit;     // 16: groups a lookup visits, 1 to kProbeGroupsMax; grows
  typename A::Word fallback_kind;   // 24: FallbackKind
  typename A::Word fallback_count;  // 32: buckets, or shards of the hash list
  typename A::Word records_words;   // 40: length of the records area
  typename A::Word spare[2];        // 48
  // Line 1: what changes rarely, and is read by few.
  typename A::Word generation;   // 64
  typename A::Word incarnation;  // 72
  typename A::Word
      records_end;  // 80: words given out; raised before a record is written, never lowered
  typename A::Word spare_1[5];  // 88
};
static_assert(sizeof(TableHeader<StdAtomics>) == 2 * kLineBytes);
static_assert(offsetof(TableHeader<StdAtomics>, records_words) == 40);
static_assert(offsetof(TableHeader<StdAtomics>, generation) == 64);
static_assert(offsetof(TableHeader<StdAtomics>, records_end) == 80);

// The numbers that say where the parts of a generation lie.
struct Geometry {
  std::uint64_t group_count = 0;
  std::uint64_t fallback_count = 0;
  std::uint64_t records_words = 0;

  static constexpr std::uint64_t align_line(std::uint64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  // Offsets in bytes from the start of the half. None overflows: callers bound the counts first
  // (plausible()).
  constexpr std::uint64_t groups_at() const { return kTableHeaderBytes; }
  constexpr std::uint64_t slots_at() const {
    return groups_at() + align_line(group_count * kGroupSlots);
  }
  constexpr std::uint64_t fallback_at() const {
    return slots_at() + group_count * kGroupSlots * kLineBytes;
  }
  constexpr std::uint64_t records_at() const {
    return fallback_at() + align_line(fallback_count * kWordBytes);
  }
  constexpr std::uint64_t bytes() const { return records_at() + records_words * kWordBytes; }

  constexpr bool plausible() const {
    return group_count >= 1 && group_count < (std::uint64_t{1} << 32) &&
           fallback_count <= kBucketsMax && records_words < (std::uint64_t{1} << 36);
  }
  constexpr std::uint64_t slot_count() const { return group_count * kGroupSlots; }
};

// Slots, fingerprints, fallback words and records in use: no alignment, no reserve.
constexpr std::uint64_t table_bytes(const Geometry& geometry, std::uint64_t records_end) {
  return geometry.slot_count() * (kLineBytes + 1) +
         (geometry.fallback_count + records_end) * kWordBytes;
}

// --- control
// --------------------------------------------------------------------------------------------------
// root: superseded mark 63 · generation 62..1 · half 0. One word, so that they change together.
inline constexpr std::uint64_t kSupersededBit = std::uint64_t{1} << 63;
constexpr std::uint64_t encode_root(std::uint64_t generation, unsigned half) {
  return generation << 1 | half;
}
constexpr unsigned root_half(std::uint64_t root) {
  return static_cast<unsigned>(root & 1);
}
constexpr std::uint64_t root_generation(std::uint64_t root) {
  return (root & ~kSupersededBit) >> 1;
}
constexpr bool root_superseded(std::uint64_t root) {
  return (root & kSupersededBit) != 0;
}

enum class SourceState : std::uint64_t {
  none = 0,
  ok = 1,
  unavailable = 2,      // does not answer; the data ages
  other_directory = 3,  // answers with another identity; the data ages
  refused = 4,          // answers with something that is not a directory of ours
};

enum class Serving : std::uint64_t {
  nothing = 0,
  snapshot = 1,   // loaded from a snapshot, not caught up since
  adopted = 2,    // adopted from an earlier syncer, not caught up since
  caught_up = 3,  // this syncer has read the directory to its end at least once
};

// Signed nanoseconds of CLOCK_BOOTTIME, stored as a word. Unknown is not zero.
inline constexpr std::int64_t kTimeUnknown = INT64_MIN;

// Where the data stands: incarnation, version, nonce, replay_from.
inline constexpr std::size_t kPositionWords = 4;
inline constexpr std::size_t kErrorTextWords = 30;
inline constexpr std::size_t kErrorTextBytes = kErrorTextWords * kWordBytes;
inline constexpr std::size_t kPlacementWaits = 64;
inline constexpr std::size_t kCountersMax = 64;

template <class A>
struct alignas(kLineBytes) ControlBlock {
  // Line 0: read twice by every lookup, written at a generation switch.
  alignas(kLineBytes) typename A::Word root;  //  0
  typename A::Word allocated[2];              //  8: bytes of each half that are reserved; only grow
  typename A::Word unused_0[5];
  // Line 1: how fresh.
  alignas(kLineBytes) typename A::Word heartbeat_ns;  // 64: the syncer was alive
  typename A::Word last_sync_ns;         // 72: last successful read of the directory to its end
  typename A::Word source_state;         // 80: SourceState
  typename A::Word serving;              // 88: Serving
  typename A::Word max_snapshot_age_ns;  // 96: older data than this is not ready
  typename A::Word stale_after_ns;       // 104: older data than this is stale
  typename A::Word catch_up_by_ns;       // 112: until then a snapshot waits for the source
  typename A::Word source_kind;          // 120: eight characters, zero-padded
  // Lines 2 and 3
  alignas(kLineBytes) PairCell<A, kPositionWords> position;  // 128
  // Line 4: one wait word for the version; then 64 by placement hash mod 64.
  alignas(kLineBytes) typename A::Word32 version_wait;                      // 256
  alignas(kLineBytes) typename A::Word32 placement_waits[kPlacementWaits];  // 320
  // Counters and gauges: shm/counters.h.
  alignas(kLineBytes) typename A::Word counters[kCountersMax];  // 576
  // The source's last error, zero-padded.
  alignas(kLineBytes) PairCell<A, kErrorTextWords> last_error;  // 1088
};
static_assert(offsetof(ControlBlock<StdAtomics>, heartbeat_ns) == 64);
static_assert(offsetof(ControlBlock<StdAtomics>, position) == 128);
static_assert(offsetof(ControlBlock<StdAtomics>, version_wait) == 256);
static_assert(offsetof(ControlBlock<StdAtomics>, placement_waits) == 320);
static_assert(offsetof(ControlBlock<StdAtomics>, counters) == 576);
static_assert(offsetof(ControlBlock<StdAtomics>, last_error) == 1088);
static_assert(sizeof(ControlBlock<StdAtomics>) == 1600);

// --- topology
// -------------------------------------------------------------------------------------------------
// Index words by shard index: offset in words of the current record from the start of the arena,
// plus one (0: never named); bit 63: the directory has removed the shard. Records:
// shm/topology_record.h.
inline constexpr std::uint64_t kShardRemovedBit = std::uint64_t{1} << 63;

template <class A>
struct TopologyHeader {
  typename A::Word index_words;  //  0: length of the index
  typename A::Word arena_words;  //  8: length of the arena behind it
  typename A::Word arena_end;    // 16: words given out; raised before a record is written
  typename A::Word shard_count;  // 24: indexes given out; raised after the index word is stored
  typename A::Word spare[4];     // 32
};
static_assert(sizeof(TopologyHeader<StdAtomics>) == kLineBytes);

// --- file header
// ----------------------------------------------------------------------------------------------
// Written once, before `complete`.
template <class A>
struct FileHeader {
  typename A::Word magic;            //   0
  typename A::Word layout_version;   //   8
  typename A::Word fingerprint;      //  16: kFingerprint
  typename A::Word features;         //  24: bits an opener must know; 0 in layout 1
  typename A::Word directory_id[2];  //  32
  typename A::Word boot_id[2];       //  48: clocks of another boot are not compared with ours
  typename A::Word span_bytes;       //  64: what a reader maps
  typename A::Word capacity;         //  72: entries
  typename A::Word control_at;       //  80: byte offsets from the start of the file
  typename A::Word topology_at;      //  88
  typename A::Word topology_bytes;   //  96
  typename A::Word unknown_at;       // 104: the negative cache; no bytes in layout 1
  typename A::Word unknown_bytes;    // 112
  typename A::Word half_at[2];       // 120
  typename A::Word half_bytes;       // 136
  typename A::Word spare[13];        // 144
  typename A::Word complete;         // 248: kComplete, stored last, never cleared
};
static_assert(offsetof(FileHeader<StdAtomics>, half_bytes) == 136);
static_assert(offsetof(FileHeader<StdAtomics>, complete) == 248);
static_assert(sizeof(FileHeader<StdAtomics>) == 256);

inline constexpr std::uint64_t kComplete = 0x4554454C504D4F43;  // "COMPLETE" as bytes

// Layout facts that two builds must share, one per byte or two: byte order · word size · line size
// · slot size · control block size / 64 · table header size / 64. Never the compiler, never the
// commit.
inline constexpr std::uint64_t kFingerprint =
    std::uint64_t{std::endian::native == std::endian::little ? 1 : 2} |
    std::uint64_t{sizeof(void*)} << 8 | std::uint64_t{kLineBytes} << 16 |
    std::uint64_t{sizeof(Slot<StdAtomics>)} << 24 |
    std::uint64_t{sizeof(ControlBlock<StdAtomics>) / kLineBytes} << 32 |
    std::uint64_t{sizeof(TableHeader<StdAtomics>) / kLineBytes} << 48;

}  // namespace fingerpost
