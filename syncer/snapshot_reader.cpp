#include "syncer/snapshot_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fingerpost {

Result<std::unique_ptr<SnapshotReader>> SnapshotReader::open(const std::string& path,
                                                             const IoOptions& options) {
  std::unique_ptr<SnapshotReader> reader(new SnapshotReader(path, options));
  if (Status status = reader->read_frame(); !status.ok()) return status;
  return reader;
}

Result<std::unique_ptr<SnapshotReader>> SnapshotReader::open(const std::string& path,
                                                             std::unique_ptr<SnapshotIo> io) {
  Result<std::unique_ptr<SnapshotReader>> reader = open(path, IoOptions{});
  if (reader) (*reader)->io_ = std::move(io);
  return reader;
}

Status SnapshotReader::fault(const Status& status) const {
  return {status.code(), "snapshot " + info_.path + ": " + status.message()};
}

Status SnapshotReader::read_exactly(std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const std::int64_t result =
        transfer({0, IoOp::read, file_.get(), offset, out.data(), out.size()});
    if (result < 0) return Status::from_errno(static_cast<int>(-result), "reading " + info_.path);
    if (result == 0) return fault({Code::corrupt, fmt::format("ends at byte {}", offset)});
    offset += static_cast<std::uint64_t>(result);
    out = out.subspan(static_cast<std::size_t>(result));
  }
  return {};
}

Status SnapshotReader::read_frame() {
  // Not blocking: a name may turn out to be a pipe.
  file_ = UniqueFd(::open(info_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_) return Status::from_errno(errno, "opening the snapshot " + info_.path);
  struct stat found {};
  if (::fstat(file_.get(), &found) != 0) {
    return Status::from_errno(errno, "looking at the snapshot " + info_.path);
  }
  if (!S_ISREG(found.st_mode)) return fault({Code::corrupt, "is not a regular file"});
  const auto size = static_cast<std::uint64_t>(found.st_size);

  std::vector<std::byte> head(std::min<std::uint64_t>(size, kSnapshotHeaderBytes));
  if (Status status = read_exactly(0, head); !status.ok()) return status;
  const Result<SnapshotHeader> header = decode_header(head, header_digest_);
  if (!header) return fault(header.status());
  info_.header = *header;
  if (size != header->file_bytes()) {
    return fault({Code::corrupt,
                  fmt::format("is {} bytes long, its header says {}", size, header->file_bytes())});
  }
  std::vector<std::byte> bytes(header->meta_bytes);
  if (Status status = read_exactly(header->meta_offset(), bytes); !status.ok()) return status;
  Result<SnapshotMeta> meta = decode_meta(bytes, header->directory_id);
  if (!meta) return fault(meta.status());
  info_.meta = *std::move(meta);
  meta_digest_ = leading_digest(bytes);

  trailer_.resize(kSnapshotTrailerBytes);
  return read_exactly(header->trailer_offset(), trailer_);
}

void SnapshotReader::read_ahead() {
  const SnapshotHeader& header = info_.header;
  const std::uint64_t depth = io_->depth();
  while (asked_ < header.blocks() && asked_ < given_ + depth && io_->in_flight() < depth) {
    const std::uint64_t offset = asked_ * kSnapshotBlockBytes;
    const auto size = std::min<std::uint64_t>(kSnapshotBlockBytes, header.blocks_bytes - offset);
    io_->read(asked_, file_.get(), kSnapshotHeaderBytes + offset, io_->take_buffer(), size);
    ++asked_;
  }
}

Result<bool> SnapshotReader::next_block(BlockView& block) {
  if (given_ == info_.header.blocks()) return false;
  if (io_ == nullptr) io_ = std::make_unique<SnapshotIo>(options_);
  window_.resize(io_->depth());
  io_->give_back(std::move(current_));
  read_ahead();
  Arrived& wanted = window_[given_ % window_.size()];
  while (wanted.buffer == nullptr) {
    IoResult result;
    if (!io_->next(result, true)) return fault({Code::internal, "a block was never read"});
    if (result.error != 0) return Status::from_errno(result.error, "reading " + info_.path);
    window_[result.tag % window_.size()] = {std::move(result.buffer), result.bytes};
  }
  current_ = std::move(wanted.buffer);
  const std::uint64_t ordinal = given_++;
  read_ahead();

  const std::uint64_t offset = ordinal * kSnapshotBlockBytes;
  const auto size =
      std::min<std::uint64_t>(kSnapshotBlockBytes, info_.header.blocks_bytes - offset);
  if (wanted.bytes != size) {
    return fault({Code::corrupt,
                  fmt::format("block {} ended after {} of {} bytes", ordinal, wanted.bytes, size)});
  }
  const std::span<const std::byte> bytes(current_.get(), size);
  const Result<BlockView> view =
      decode_block(bytes, ordinal, static_cast<std::uint32_t>(info_.meta.topology.size()));
  if (!view) return fault(view.status());
  block = *view;
  chain_ = chain_digest(chain_, leading_digest(bytes));
  entries_ += block.records() - block.tombstones();
  tombstones_ += block.tombstones();
  parts_ += block.parts();
  return true;
}

Status SnapshotReader::finish() {
  const SnapshotHeader& header = info_.header;
  if (given_ != header.blocks()) {
    return fault(
        {Code::internal, fmt::format("{} of {} blocks were read", given_, header.blocks())});
  }
  if (entries_ != header.entries || tombstones_ != header.tombstones) {
    return fault(
        {Code::corrupt, fmt::format("holds {} entries and {} tombstones, its header says "
                                    "{} and {}",
                                    entries_, tombstones_, header.entries, header.tombstones)});
  }
  if (parts_ != header.parts) {
    return fault({Code::corrupt, fmt::format("holds {} parts of split tenants, its header says {}",
                                             parts_, header.parts)});
  }
  const std::uint64_t chain = chain_digest(chain_digest(chain_, meta_digest_), header_digest_);
  if (Status status = check_trailer(trailer_, header, chain); !status.ok()) return fault(status);
  return {};
}

Result<SnapshotInfo> inspect_snapshot(const std::string& path) {
  const auto reader = SnapshotReader::open(path, IoOptions{});
  if (!reader) return reader.status();
  return (*reader)->info();
}

Result<SnapshotVerdict> verify_snapshot(const std::string& path, const IoOptions& options) {
  const auto reader = SnapshotReader::open(path, options);
  if (!reader) return reader.status();
  for (;;) {
    BlockView block;
    const Result<bool> more = (*reader)->next_block(block);
    if (!more) return more.status();
    if (!*more) break;
  }
  if (Status status = (*reader)->finish(); !status.ok()) return status;
  return SnapshotVerdict{(*reader)->info(), (*reader)->io_stats()};
}

}  // namespace fingerpost
