// Snapshots whose records prove themselves: every field follows from the record's number.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "syncer/snapshot_reader.h"
#include "syncer/snapshot_store.h"
#include "syncer/snapshot_writer.h"

namespace fingerpost {

inline DirectoryId sample_directory(std::uint8_t last) {
  DirectoryId id{0xfe, 0xed};
  id[15] = last;
  return id;
}

inline SnapshotEnd sample_end(std::uint64_t version) {
  SnapshotEnd end;
  end.cursor = {version, version * 31};
  end.replay_from = version - 1;
  end.last_sync_unix_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(version);
  end.meta.layout.schema_version = 1;
  end.meta.layout.fallback = Fallback::hash;
  end.meta.layout.hash_shards = {"alpha", "beta"};
  end.meta.layout.replay_floor = 3;
  end.meta.layout.epoch = 9;
  end.meta.topology = {
      {"alpha", "10.0.0.1:5432", {"10.0.1.1:5432", "10.0.1.2:5432"}, "eu", 100, {{"tier", "gold"}}},
      {"beta", "", {}, "", 0, {}},
      {"gamma", "10.0.0.3:5432", {}, "us", 7, {{"a", ""}, {"b", "x"}}},
  };
  return end;
}

inline std::string sample_id(std::uint64_t number) {
  return fmt::format("tenant-{:06}", number);
}

// `records` of them: every seventh a bucket, every eleventh a tombstone.
inline SnapshotRecord sample_record(std::uint64_t number, const std::string& id) {
  SnapshotRecord record;
  record.epoch = number * 3 + 1;
  if (number % 11 == 0) {
    record.kind = RecordKind::tombstone;
    record.id = id;
    return record;
  }
  if (number % 13 == 0) {
    record.kind = RecordKind::split;
    record.id = id;
    record.read_at = record.epoch + number % 5;
    for (std::uint64_t k = 0; k < 2 + number % 40; ++k) {
      record.parts.push_back({static_cast<std::uint8_t>(1 + k % 4),
                              static_cast<std::uint32_t>(k % 3), k % 2 == 0 ? kNoSnapshotShard : 2,
                              number + k});
    }
    return record;
  }
  record.state = static_cast<std::uint8_t>(number % 4);
  record.shard = static_cast<std::uint32_t>(number % 3);
  if (number % 2 == 0) record.target = static_cast<std::uint32_t>((number + 1) % 3);
  if (number % 7 == 0) {
    record.kind = RecordKind::bucket;
    record.bucket = static_cast<std::uint32_t>(number);
  } else {
    record.id = id;
  }
  return record;
}

inline Status append_samples(SnapshotWriter& writer, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t number = first; number < end; ++number) {
    const std::string id = sample_id(number);
    if (Status status = writer.append(sample_record(number, id)); !status.ok()) return status;
  }
  return {};
}

// Writes one and publishes it; the path of it.
inline Result<std::string> write_sample(SnapshotStore& store, std::uint64_t records,
                                        std::uint64_t version, std::uint64_t incarnation = 1,
                                        const DirectoryId& id = sample_directory(1)) {
  auto writer = store.write(id, incarnation);
  if (!writer) return writer.status();
  if (Status status = append_samples(**writer, 0, records); !status.ok()) return status;
  if (Status status = (*writer)->finish(sample_end(version)); !status.ok()) return status;
  return (*writer)->path();
}

// Why the snapshot does not hold exactly the sample records, or "".
inline std::string compare_with_samples(SnapshotReader& reader, std::uint64_t records) {
  std::uint64_t number = 0;
  for (;;) {
    BlockView block;
    const Result<bool> more = reader.next_block(block);
    if (!more) return more.status().message();
    if (!*more) break;
    for (SnapshotRecord found; block.next(found); ++number) {
      const std::string id = sample_id(number);
      const SnapshotRecord wanted = sample_record(number, id);
      if (found.kind != wanted.kind || found.state != wanted.state || found.shard != wanted.shard ||
          found.target != wanted.target || found.epoch != wanted.epoch || found.id != wanted.id ||
          found.bucket != wanted.bucket || found.read_at != wanted.read_at ||
          found.parts != wanted.parts) {
        return fmt::format("record {} differs", number);
      }
    }
  }
  if (Status status = reader.finish(); !status.ok()) return status.message();
  return number == records ? "" : fmt::format("{} records instead of {}", number, records);
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace fingerpost
