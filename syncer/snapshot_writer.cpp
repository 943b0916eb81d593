#include "syncer/snapshot_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace fingerpost {
namespace {

constexpr mode_t kFileMode = 0640;

// What a result's tag says when it fails.
enum class Piece : std::uint64_t { content, file_sync, folder_sync };

constexpr std::uint64_t tag(Piece piece, std::size_t size) {
  return static_cast<std::uint64_t>(piece) << 32 | size;
}

}  // namespace

std::string snapshot_file_name(std::string_view name, std::uint64_t incarnation,
                               std::uint64_t version) {
  return fmt::format("{}-{}-{}.fps", name, incarnation, version);
}

std::string snapshot_temporary_name(std::string_view name) {
  return fmt::format("{}.fps.new", name);
}

SnapshotWriter::SnapshotWriter(std::string directory, std::string name,
                               std::unique_ptr<SnapshotIo> io)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      temporary_(directory_ + "/" + snapshot_temporary_name(name_)),
      io_(std::move(io)) {}

SnapshotWriter::~SnapshotWriter() {
  abort();
}

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::create(const std::string& directory,
                                                               const std::string& name,
                                                               const DirectoryId& directory_id,
                                                               std::uint64_t incarnation,
                                                               std::unique_ptr<SnapshotIo> io) {
  std::unique_ptr<SnapshotWriter> writer(new SnapshotWriter(directory, name, std::move(io)));
  writer->header_.directory_id = directory_id;
  writer->header_.incarnation = incarnation;
  if (Status status = writer->open_file(); !status.ok()) return writer->fail(std::move(status));
  return writer;
}

Status SnapshotWriter::open_file() {
  folder_ = UniqueFd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) return Status::from_errno(errno, "opening the snapshot folder " + directory_);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  file_ = UniqueFd(::open(temporary_.c_str(), kFlags, kFileMode));
  if (!file_ && errno == EEXIST && ::unlink(temporary_.c_str()) == 0) {
    file_ = UniqueFd(::open(temporary_.c_str(), kFlags, kFileMode));
  }
  if (!file_) {
    const Status status = Status::from_errno(errno, "creating the snapshot " + temporary_);
    temporary_.clear();  // whatever lies there is not ours to remove
    return status;
  }
  return {};
}

Status SnapshotWriter::append_entry(std::string_view id, std::uint8_t state, std::uint32_t shard,
                                    std::uint32_t target, std::uint64_t epoch) {
  return append({RecordKind::entry, state, shard, target, epoch, id, 0, 0, {}});
}

Status SnapshotWriter::append_bucket(std::uint32_t bucket, std::uint8_t state, std::uint32_t shard,
                                     std::uint32_t target, std::uint64_t epoch) {
  return append({RecordKind::bucket, state, shard, target, epoch, {}, bucket, 0, {}});
}

Status SnapshotWriter::append_tombstone(std::string_view id, std::uint64_t version) {
  return append(
      {RecordKind::tombstone, 0, kNoSnapshotShard, kNoSnapshotShard, version, id, 0, 0, {}});
}

Status SnapshotWriter::append(const SnapshotRecord& record) {
  assert(stage_ == Stage::open || stage_ == Stage::failed);
  if (!failure_.ok()) return failure_;
  if (record.kind != RecordKind::bucket &&
      (record.id.empty() || record.id.size() > kSnapshotIdBytesMax)) {
    return fail({Code::refused, fmt::format("snapshot {}: an id of {} bytes, it has 1 to {}",
                                            temporary_, record.id.size(), kSnapshotIdBytesMax)});
  }
  if (block_ != nullptr && !builder_.append(record)) {
    if (Status status = write_block(false); !status.ok()) return fail(std::move(status));
  }
  if (block_ == nullptr) {
    block_ = io_->take_buffer();
    builder_ = BlockBuilder({block_.get(), kSnapshotBlockBytes});
    builder_.append(record);
  }
  const auto name_shard = [this](std::uint32_t shard) {
    if (shard != kNoSnapshotShard) shards_named_ = std::max(shards_named_, shard + 1);
  };
  name_shard(record.shard);
  name_shard(record.target);
  for (const SnapshotPart& part : record.parts) {
    name_shard(part.shard);
    name_shard(part.target);
  }
  header_.parts += record.parts.size();
  ++(record.kind == RecordKind::tombstone ? header_.tombstones : header_.entries);
  return {};
}

bool SnapshotWriter::would_wait() {
  IoResult result;
  while (failure_.ok() && io_->next(result, false)) {
    if (Status status = settle(result); !status.ok()) (void)fail(std::move(status));
  }
  return failure_.ok() && io_->in_flight() == io_->depth();
}

Status SnapshotWriter::write_block(bool last) {
  if (Status status = make_room(); !status.ok()) return status;
  const auto bytes = builder_.seal(blocks_, last);
  chain_ = chain_digest(chain_, leading_digest(bytes));
  const std::uint64_t offset = kSnapshotHeaderBytes + blocks_ * kSnapshotBlockBytes;
  io_->write(tag(Piece::content, bytes.size()), file_.get(), offset, std::move(block_),
             bytes.size());
  header_.blocks_bytes += bytes.size();
  ++blocks_;
  return {};
}

Status SnapshotWriter::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (Status status = make_room(); !status.ok()) return status;
    const auto piece = bytes.first(std::min(bytes.size(), kIoBufferBytes));
    IoBuffer buffer = io_->take_buffer();
    std::memcpy(buffer.get(), piece.data(), piece.size());
    io_->write(tag(Piece::content, piece.size()), file_.get(), offset, std::move(buffer),
               piece.size());
    offset += piece.size();
    bytes = bytes.subspan(piece.size());
  }
  return {};
}

Status SnapshotWriter::make_room() {
  IoResult result;
  while (io_->next(result, io_->in_flight() == io_->depth())) {
    if (Status status = settle(result); !status.ok()) return status;
  }
  return {};
}

Status SnapshotWriter::settle(IoResult& result) {
  io_->give_back(std::move(result.buffer));
  const auto piece = static_cast<Piece>(result.tag >> 32);
  if (result.error != 0) {
    const std::string_view what = piece == Piece::content ? "writing the snapshot "
                                  : piece == Piece::file_sync
                                      ? "syncing the snapshot "
                                      : "syncing the folder of the snapshot ";
    const std::string& path = piece == Piece::folder_sync ? path_ : temporary_;
    return Status::from_errno(result.error, std::string(what) + path);
  }
  // A write that ends early without an error was turned into one by SnapshotIo.
  assert(piece != Piece::content || result.bytes == (result.tag & 0xFFFF'FFFF));
  return {};
}

Status SnapshotWriter::seal(const SnapshotEnd& end) {
  assert(stage_ == Stage::open || stage_ == Stage::failed);
  if (!failure_.ok()) return failure_;
  if (shards_named_ > end.meta.topology.size()) {
    return fail(
        {Code::internal, fmt::format("snapshot {}: a record names shard {} of {}", temporary_,
                                     shards_named_ - 1, end.meta.topology.size())});
  }
  const Result<std::vector<std::byte>> meta = encode_meta(end.meta);
  if (!meta) return fail(meta.status());
  if (block_ != nullptr) {
    if (Status status = write_block(true); !status.ok()) return fail(std::move(status));
  }
  header_.cursor = end.cursor;
  header_.replay_from = end.replay_from;
  header_.last_sync_unix_ns = end.last_sync_unix_ns;
  header_.seed = end.seed;
  header_.meta_bytes = meta->size();
  std::vector<std::byte> head(kSnapshotHeaderBytes);
  const std::uint64_t header_digest = encode_header(header_, head);
  chain_ = chain_digest(chain_digest(chain_, leading_digest(*meta)), header_digest);
  std::vector<std::byte> trailer(kSnapshotTrailerBytes);
  encode_trailer(header_, chain_, trailer);

  Status status = write_at(header_.meta_offset(), *meta);
  if (status.ok()) status = write_at(header_.trailer_offset(), trailer);
  if (status.ok()) status = write_at(0, head);
  if (!status.ok()) return fail(std::move(status));
  stage_ = Stage::writing;
  return {};
}

Result<bool> SnapshotWriter::poll(bool wait) {
  assert(stage_ != Stage::open);
  if (!failure_.ok()) return failure_;
  IoResult result;
  while (stage_ != Stage::done) {
    if (io_->next(result, wait)) {
      if (Status status = settle(result); !status.ok()) return fail(std::move(status));
    } else if (io_->in_flight() > 0) {
      return false;
    } else if (Status status = advance(); !status.ok()) {
      return fail(std::move(status));
    }
  }
  return true;
}

// Called when everything asked for so far is done, and only then: each step relies on the one
// before.
Status SnapshotWriter::advance() {
  switch (stage_) {
    case Stage::writing:
      io_->sync(tag(Piece::file_sync, 0), file_.get());
      stage_ = Stage::syncing;
      return {};
    case Stage::syncing:
      if (Status status = publish(); !status.ok()) return status;
      io_->sync(tag(Piece::folder_sync, 0), folder_.get());
      stage_ = Stage::syncing_folder;
      return {};
    case Stage::syncing_folder:
      stage_ = Stage::done;
      return {};
    case Stage::open:
    case Stage::done:
    case Stage::failed:
      break;
  }
  return {Code::internal, "snapshot " + temporary_ + " cannot go on from where it is"};
}

Status SnapshotWriter::publish() {
  const std::string file =
      directory_ + "/" + snapshot_file_name(name_, header_.incarnation, header_.cursor.version);
  if (::rename(temporary_.c_str(), file.c_str()) != 0) {
    return Status::from_errno(errno, "renaming the snapshot " + temporary_ + " to " + file);
  }
  temporary_.clear();
  path_ = file;
  return {};
}

Status SnapshotWriter::finish(const SnapshotEnd& end) {
  if (Status status = seal(end); !status.ok()) return status;
  const Result<bool> done = poll(true);
  return done ? Status{} : done.status();
}

Status SnapshotWriter::fail(Status status) {
  failure_ = std::move(status);
  stage_ = Stage::failed;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  return failure_;
}

void SnapshotWriter::abort() {
  if (stage_ == Stage::done || stage_ == Stage::failed) return;
  (void)fail({Code::unavailable, "snapshot " + temporary_ + " was aborted"});
}

}  // namespace fingerpost
