#include "syncer/snapshot_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "shm/hash.h"

namespace fingerpost {
namespace {

constexpr std::string_view kHeaderMagic =
    "\x89"
    "FPSNAP\n";
constexpr std::string_view kTrailerMagic = "FPSNEND\n";
constexpr std::uint32_t kBlockMagic = 0x4B42'5046;  // "FPBK"
constexpr std::size_t kDigestBytes = 8;
constexpr std::size_t kHeaderDigestAt = kSnapshotHeaderBytes - kDigestBytes;

template <class T>
T little_endian(T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) return value;
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

template <class T>
void store(std::byte* at, T value) noexcept {
  value = little_endian(value);
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T load(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return little_endian(value);
}

bool starts_with(const std::byte* at, std::string_view magic) noexcept {
  return std::memcmp(at, magic.data(), magic.size()) == 0;
}

bool all_zero(std::span<const std::byte> bytes) noexcept {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Status damaged(std::string what) {
  return {Code::corrupt, std::move(what)};
}

// Appends to meta; a text longer than its bound is remembered and refused at the end.
class MetaEncoder {
 public:
  template <class T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store(bytes_.data() + at, value);
  }
  void text(std::string_view text, std::size_t bytes_max, std::string_view what) {
    if (text.size() > bytes_max && refusal_.empty()) {
      refusal_ = fmt::format("{} of {} bytes is longer than {}", what, text.size(), bytes_max);
    }
    number(static_cast<std::uint16_t>(text.size()));
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
  }
  void count(std::size_t count, std::size_t count_max, std::string_view what) {
    if (count > count_max && refusal_.empty()) {
      refusal_ = fmt::format("{} {} are more than {}", count, what, count_max);
    }
    number(static_cast<std::uint32_t>(count));
  }
  Result<std::vector<std::byte>> take() {
    if (refusal_.empty() && bytes_.size() > kSnapshotMetaBytesMax) {
      refusal_ = fmt::format("layout and topology take {} bytes, at most {} are written",
                             bytes_.size(), kSnapshotMetaBytesMax);
    }
    if (!refusal_.empty()) return Status{Code::refused, "snapshot: " + refusal_};
    store(bytes_.data(), content_digest(std::span(bytes_).subspan(kDigestBytes)));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kDigestBytes);
  std::string refusal_;
};

// Reads meta; after the first value that does not fit, every further one is empty and ok() is
// false.
class MetaDecoder {
 public:
  explicit MetaDecoder(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class T>
  T number() {
    if (left_.size() < sizeof(T)) {
      ok_ = false;
      left_ = {};
      return 0;
    }
    const T value = load<T>(left_.data());
    left_ = left_.subspan(sizeof(T));
    return value;
  }
  std::string text(std::size_t bytes_max) {
    const std::size_t size = number<std::uint16_t>();
    if (size > bytes_max || size > left_.size()) {
      ok_ = false;
      left_ = {};
      return {};
    }
    std::string text(reinterpret_cast<const char*>(left_.data()), size);
    left_ = left_.subspan(size);
    return text;
  }
  // A count of things that take at least `bytes_each`, so that nobody reserves for more than can be
  // there.
  std::size_t count(std::size_t count_max, std::size_t bytes_each) {
    const std::size_t count = number<std::uint32_t>();
    if (count > count_max || count > left_.size() / bytes_each) {
      ok_ = false;
      left_ = {};
      return 0;
    }
    return count;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
  bool ok_ = true;
};

constexpr std::size_t kHashShardsMax = 1
                                       << 20;  // bounds of the format, far above those of a segment
constexpr std::size_t kTopologyMax = 1 << 20;
constexpr std::size_t kTextBytesMin = 2;
constexpr std::size_t kShardBytesMin = 3 * kTextBytesMin + 4 + 4 + 4;

ShardSpec decode_shard(MetaDecoder& in) {
  ShardSpec shard;
  shard.name = in.text(kShardNameBytesMax);
  shard.primary = in.text(kShardFieldBytesMax);
  shard.region = in.text(kShardFieldBytesMax);
  shard.weight = in.number<std::uint32_t>();
  shard.replicas.resize(in.count(kShardListMax, kTextBytesMin));
  for (std::string& replica : shard.replicas) replica = in.text(kShardFieldBytesMax);
  shard.attributes.resize(in.count(kShardListMax, 2 * kTextBytesMin));
  for (auto& [name, value] : shard.attributes) {
    name = in.text(kShardFieldBytesMax);
    value = in.text(kShardFieldBytesMax);
  }
  return shard;
}

void encode_shard(const ShardSpec& shard, MetaEncoder& out) {
  out.text(shard.name, kShardNameBytesMax, "a shard's name");
  out.text(shard.primary, kShardFieldBytesMax, "a shard's primary");
  out.text(shard.region, kShardFieldBytesMax, "a shard's region");
  out.number(shard.weight);
  out.count(shard.replicas.size(), kShardListMax, "replicas of a shard");
  for (const std::string& replica : shard.replicas) {
    out.text(replica, kShardFieldBytesMax, "a shard's replica");
  }
  out.count(shard.attributes.size(), kShardListMax, "attributes of a shard");
  for (const auto& [name, value] : shard.attributes) {
    out.text(name, kShardFieldBytesMax, "an attribute's name");
    out.text(value, kShardFieldBytesMax, "an attribute's value");
  }
}

// Why the record at `at` cannot be one, or its length. `left` bytes of the block's used part
// remain.
struct RecordCheck {
  std::size_t bytes = 0;
  const char* fault = nullptr;
};
RecordCheck check_record(const std::byte* at, std::size_t left,
                         std::uint32_t shard_count) noexcept {
  if (left < kSnapshotRecordHeadBytes) return {0, "ends within its head"};
  const auto kind = static_cast<RecordKind>(at[0]);
  const std::size_t id_bytes = load<std::uint16_t>(at + 2);
  const auto names_nothing = [shard_count](std::uint32_t shard) {
    return shard >= shard_count && shard != kNoSnapshotShard;
  };
  std::size_t bytes = kSnapshotRecordHeadBytes + id_bytes;
  if (bytes > left) return {0, "is longer than its block"};
  switch (kind) {
    case RecordKind::split: {
      if (id_bytes == 0 || id_bytes > kIdBytesMax) return {0, "has an impossible id length"};
      const auto parts = load<std::uint32_t>(at + 4);
      if (parts < 2 || parts > kPartsMax) return {0, "has an impossible number of parts"};
      const std::byte* part = at + bytes + sizeof(std::uint64_t);
      bytes += sizeof(std::uint64_t) + parts * kSnapshotPartBytes;
      if (bytes > left) return {0, "is longer than its block"};
      for (std::uint32_t k = 0; k < parts; ++k, part += kSnapshotPartBytes) {
        if (names_nothing(load<std::uint32_t>(part + 1)) ||
            names_nothing(load<std::uint32_t>(part + 5))) {
          return {0, "names a shard that the topology lacks"};
        }
      }
      return {bytes, nullptr};
    }
    case RecordKind::entry:
    case RecordKind::tombstone:
      if (id_bytes == 0 || id_bytes > kSnapshotIdBytesMax)
        return {0, "has an impossible id length"};
      break;
    case RecordKind::bucket:
      if (id_bytes != sizeof(std::uint32_t)) return {0, "has an impossible bucket number"};
      break;
    default:
      return {0, "is of an unknown kind"};
  }
  if (names_nothing(load<std::uint32_t>(at + 4)) || names_nothing(load<std::uint32_t>(at + 8))) {
    return {0, "names a shard that the topology lacks"};
  }
  return {bytes, nullptr};
}

}  // namespace

std::uint64_t chain_digest(std::uint64_t chain, std::uint64_t digest) noexcept {
  std::array<std::byte, 16> both;
  store(both.data(), chain);
  store(both.data() + 8, digest);
  return content_digest(both);
}

std::uint64_t leading_digest(std::span<const std::byte> part) noexcept {
  assert(part.size() >= kDigestBytes);
  return load<std::uint64_t>(part.data());
}

std::uint64_t encode_header(const SnapshotHeader& header, std::span<std::byte> out) {
  assert(out.size() == kSnapshotHeaderBytes);
  std::byte* at = out.data();
  std::memset(at, 0, out.size());
  std::memcpy(at, kHeaderMagic.data(), kHeaderMagic.size());
  store(at + 8, kSnapshotFormat);
  std::memcpy(at + 16, header.directory_id.data(), header.directory_id.size());
  store(at + 32, header.incarnation);
  store(at + 40, header.cursor.version);
  store(at + 48, header.cursor.nonce);
  store(at + 56, header.replay_from);
  store(at + 64, header.last_sync_unix_ns);
  store(at + 72, header.blocks_bytes);
  store(at + 80, header.meta_bytes);
  store(at + 88, header.entries);
  store(at + 96, header.tombstones);
  store(at + 104, header.parts);
  store(at + 112, header.seed);
  const std::uint64_t digest = content_digest(out.first(kHeaderDigestAt));
  store(at + kHeaderDigestAt, digest);
  return digest;
}

Result<SnapshotHeader> decode_header(std::span<const std::byte> bytes, std::uint64_t& digest) {
  if (bytes.size() < kSnapshotHeaderBytes) {
    return damaged(
        fmt::format("is {} bytes, a header alone has {}", bytes.size(), kSnapshotHeaderBytes));
  }
  bytes = bytes.first(kSnapshotHeaderBytes);
  const std::byte* at = bytes.data();
  if (!starts_with(at, kHeaderMagic)) return damaged("does not begin as a snapshot does");
  if (const auto format = load<std::uint32_t>(at + 8);
      format < kSnapshotFormatMin || format > kSnapshotFormat) {
    return Status{Code::other_layout,
                  fmt::format("is of format {}, this build reads formats {} to {}", format,
                              kSnapshotFormatMin, kSnapshotFormat)};
  }
  digest = load<std::uint64_t>(at + kHeaderDigestAt);
  if (const auto found = content_digest(bytes.first(kHeaderDigestAt)); found != digest) {
    return damaged(fmt::format("header digest is {:016x}, its bytes give {:016x}", digest, found));
  }
  SnapshotHeader header;
  header.format = load<std::uint32_t>(at + 8);
  std::memcpy(header.directory_id.data(), at + 16, header.directory_id.size());
  header.incarnation = load<std::uint64_t>(at + 32);
  header.cursor.version = load<std::uint64_t>(at + 40);
  header.cursor.nonce = load<std::uint64_t>(at + 48);
  header.replay_from = load<std::uint64_t>(at + 56);
  header.last_sync_unix_ns = load<std::int64_t>(at + 64);
  header.blocks_bytes = load<std::uint64_t>(at + 72);
  header.meta_bytes = load<std::uint64_t>(at + 80);
  header.entries = load<std::uint64_t>(at + 88);
  header.tombstones = load<std::uint64_t>(at + 96);
  header.parts = load<std::uint64_t>(at + 104);
  header.seed = load<std::uint64_t>(at + 112);
  if (header.blocks_bytes > kSnapshotBlocksBytesMax || header.meta_bytes < kDigestBytes ||
      header.meta_bytes > kSnapshotMetaBytesMax) {
    return damaged(fmt::format("header claims {} bytes of blocks and {} of meta",
                               header.blocks_bytes, header.meta_bytes));
  }
  // Whoever sizes a table by these counts must not be led to more than the file can hold.
  const std::uint64_t records_max = header.blocks_bytes / kSnapshotRecordHeadBytes;
  if (header.entries > records_max || header.tombstones > records_max - header.entries) {
    return damaged(fmt::format("header claims {} entries and {} tombstones in {} bytes of blocks",
                               header.entries, header.tombstones, header.blocks_bytes));
  }
  if (header.parts > header.blocks_bytes / kSnapshotPartBytes) {
    return damaged(fmt::format("header claims {} parts in {} bytes of blocks", header.parts,
                               header.blocks_bytes));
  }
  return header;
}

Result<std::vector<std::byte>> encode_meta(const SnapshotMeta& meta) {
  MetaEncoder out;
  out.number(meta.layout.schema_version);
  out.number(static_cast<std::uint8_t>(meta.layout.fallback));
  out.number(meta.layout.buckets);
  out.number(meta.layout.replay_floor);
  out.number(meta.layout.epoch);
  out.count(meta.layout.hash_shards.size(), kHashShardsMax, "shards in the hash list");
  for (const std::string& name : meta.layout.hash_shards) {
    out.text(name, kShardNameBytesMax, "a name in the hash list");
  }
  out.count(meta.topology.size(), kTopologyMax, "shards");
  for (const ShardSpec& shard : meta.topology) encode_shard(shard, out);
  return out.take();
}

Result<SnapshotMeta> decode_meta(std::span<const std::byte> bytes, const DirectoryId& id) {
  if (bytes.size() < kDigestBytes) return damaged("meta ends within its digest");
  const auto content = bytes.subspan(kDigestBytes);
  if (const auto found = content_digest(content); found != leading_digest(bytes)) {
    return damaged(fmt::format("meta digest is {:016x}, its bytes give {:016x}",
                               leading_digest(bytes), found));
  }
  MetaDecoder in(content);
  SnapshotMeta meta;
  meta.layout.directory_id = id;
  meta.layout.schema_version = in.number<std::uint32_t>();
  const auto fallback = in.number<std::uint8_t>();
  meta.layout.fallback = static_cast<Fallback>(fallback);
  meta.layout.buckets = in.number<std::uint32_t>();
  meta.layout.replay_floor = in.number<std::uint64_t>();
  meta.layout.epoch = in.number<std::uint64_t>();
  meta.layout.hash_shards.resize(in.count(kHashShardsMax, kTextBytesMin));
  for (std::string& name : meta.layout.hash_shards) name = in.text(kShardNameBytesMax);
  const std::size_t shards = in.count(kTopologyMax, kShardBytesMin);
  meta.topology.reserve(shards);
  for (std::size_t i = 0; i < shards && in.ok(); ++i) meta.topology.push_back(decode_shard(in));
  if (!in.ok() || !in.at_end())
    return damaged("meta does not hold what its counts and lengths say");
  if (fallback > static_cast<std::uint8_t>(Fallback::hash)) {
    return damaged(fmt::format("meta names fallback rule {}, which does not exist", fallback));
  }
  return meta;
}

void encode_trailer(const SnapshotHeader& header, std::uint64_t chain, std::span<std::byte> out) {
  assert(out.size() == kSnapshotTrailerBytes);
  std::byte* at = out.data();
  std::memset(at, 0, out.size());
  std::memcpy(at + 8, kTrailerMagic.data(), kTrailerMagic.size());
  store(at + 16, header.blocks_bytes);
  store(at + 24, header.entries);
  store(at + 32, header.tombstones);
  store(at + 40, chain);
  store(at + 48, header.cursor.version);
  store(at, content_digest(out.subspan(kDigestBytes)));
}

Status check_trailer(std::span<const std::byte> bytes, const SnapshotHeader& header,
                     std::uint64_t chain) {
  if (bytes.size() != kSnapshotTrailerBytes) return damaged("ends within its trailer");
  const std::byte* at = bytes.data();
  if (!starts_with(at + 8, kTrailerMagic)) return damaged("does not end as a snapshot does");
  if (content_digest(bytes.subspan(kDigestBytes)) != leading_digest(bytes)) {
    return damaged("trailer digest does not match its bytes");
  }
  const auto differs = [&](std::size_t offset, std::uint64_t expected, std::string_view what) {
    const auto found = load<std::uint64_t>(at + offset);
    if (found == expected) return Status{};
    return damaged(
        fmt::format("trailer says {} {}, the rest of the file {}", what, found, expected));
  };
  if (Status s = differs(16, header.blocks_bytes, "bytes of blocks"); !s.ok()) return s;
  if (Status s = differs(24, header.entries, "entries"); !s.ok()) return s;
  if (Status s = differs(32, header.tombstones, "tombstones"); !s.ok()) return s;
  if (Status s = differs(48, header.cursor.version, "version"); !s.ok()) return s;
  return differs(40, chain, "chain of digests");
}

bool BlockBuilder::append(const SnapshotRecord& record) noexcept {
  const bool is_bucket = record.kind == RecordKind::bucket;
  const std::size_t id_bytes = is_bucket ? sizeof record.bucket : record.id.size();
  assert(id_bytes >= 1 && id_bytes <= kSnapshotIdBytesMax);
  const bool is_split = record.kind == RecordKind::split;
  const std::size_t bytes =
      kSnapshotRecordHeadBytes + id_bytes +
      (is_split ? sizeof record.read_at + record.parts.size() * kSnapshotPartBytes : 0);
  if (block_.size() - used_ < bytes) return false;
  std::byte* at = block_.data() + used_;
  at[0] = static_cast<std::byte>(record.kind);
  at[1] = static_cast<std::byte>(record.state);
  store(at + 2, static_cast<std::uint16_t>(id_bytes));
  store(at + 4, is_split ? static_cast<std::uint32_t>(record.parts.size()) : record.shard);
  store(at + 8, record.target);
  store(at + 12, record.epoch);
  if (is_bucket) {
    store(at + kSnapshotRecordHeadBytes, record.bucket);
  } else {
    std::memcpy(at + kSnapshotRecordHeadBytes, record.id.data(), id_bytes);
  }
  if (is_split) {
    std::byte* part = at + kSnapshotRecordHeadBytes + id_bytes;
    store(part, record.read_at);
    part += sizeof record.read_at;
    for (const SnapshotPart& one : record.parts) {
      part[0] = static_cast<std::byte>(one.state);
      store(part + 1, one.shard);
      store(part + 5, one.target);
      store(part + 9, one.epoch);
      part += kSnapshotPartBytes;
    }
  }
  used_ += bytes;
  ++records_;
  return true;
}

std::span<const std::byte> BlockBuilder::seal(std::uint64_t ordinal, bool last) noexcept {
  const auto block = last ? block_.first(used_) : block_;
  std::byte* at = block.data();
  std::memset(at + used_, 0, block.size() - used_);
  store(at + 8, kBlockMagic);
  store(at + 12, static_cast<std::uint32_t>(used_));
  store(at + 16, ordinal);
  store(at + 24, records_);
  store(at + 28, std::uint32_t{0});
  store(at, content_digest(block.subspan(kDigestBytes)));
  return block;
}

Result<BlockView> decode_block(std::span<const std::byte> block, std::uint64_t ordinal,
                               std::uint32_t shard_count) {
  const auto where = [&](std::string what) {
    return damaged(fmt::format("block {} (at byte {}) {}", ordinal,
                               kSnapshotHeaderBytes + ordinal * kSnapshotBlockBytes, what));
  };
  if (block.size() < kSnapshotBlockHeadBytes) return where("ends within its head");
  if (const auto found = content_digest(block.subspan(kDigestBytes));
      found != leading_digest(block)) {
    return where(
        fmt::format("has digest {:016x}, its bytes give {:016x}", leading_digest(block), found));
  }
  const std::byte* const begin = block.data();
  const std::size_t used = load<std::uint32_t>(begin + 12);
  if (load<std::uint32_t>(begin + 8) != kBlockMagic || load<std::uint64_t>(begin + 16) != ordinal) {
    return where("is not the block that belongs there");
  }
  if (used < kSnapshotBlockHeadBytes || used > block.size() || !all_zero(block.subspan(used))) {
    return where(fmt::format("claims {} of its {} bytes", used, block.size()));
  }
  BlockView view;
  view.at_ = begin + kSnapshotBlockHeadBytes;
  view.records_ = view.left_ = load<std::uint32_t>(begin + 24);
  std::size_t at = kSnapshotBlockHeadBytes;
  std::uint32_t records = 0;
  for (; at < used; ++records) {
    const RecordCheck check = check_record(begin + at, used - at, shard_count);
    if (check.fault != nullptr) return where(fmt::format("record {} {}", records, check.fault));
    if (static_cast<RecordKind>(begin[at]) == RecordKind::tombstone) ++view.tombstones_;
    if (static_cast<RecordKind>(begin[at]) == RecordKind::split) {
      view.parts_ += load<std::uint32_t>(begin + at + 4);
    }
    at += check.bytes;
  }
  if (records != view.records_) {
    return where(fmt::format("claims {} records and holds {}", view.records_, records));
  }
  return view;
}

bool BlockView::next(SnapshotRecord& record) noexcept {
  if (left_ == 0) return false;
  --left_;
  record.kind = static_cast<RecordKind>(at_[0]);
  record.state = static_cast<std::uint8_t>(at_[1]);
  const std::size_t id_bytes = load<std::uint16_t>(at_ + 2);
  record.shard = load<std::uint32_t>(at_ + 4);
  record.target = load<std::uint32_t>(at_ + 8);
  record.epoch = load<std::uint64_t>(at_ + 12);
  const std::byte* id = at_ + kSnapshotRecordHeadBytes;
  if (record.kind == RecordKind::bucket) {
    record.bucket = load<std::uint32_t>(id);
    record.id = {};
  } else {
    record.bucket = 0;
    record.id = {reinterpret_cast<const char*>(id), id_bytes};
  }
  at_ = id + id_bytes;
  record.read_at = 0;
  record.parts.clear();
  if (record.kind == RecordKind::split) {
    record.parts.resize(record.shard);
    record.shard = kNoSnapshotShard;
    record.read_at = load<std::uint64_t>(at_);
    at_ += sizeof record.read_at;
    for (SnapshotPart& part : record.parts) {
      part = {static_cast<std::uint8_t>(at_[0]), load<std::uint32_t>(at_ + 1),
              load<std::uint32_t>(at_ + 5), load<std::uint64_t>(at_ + 9)};
      at_ += kSnapshotPartBytes;
    }
  }
  return true;
}

}  // namespace fingerpost
