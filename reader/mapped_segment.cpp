#include "reader/mapped_segment.h"

#include "reader/route.h"

namespace fingerpost {

Result<std::unique_ptr<MappedSegment>> MappedSegment::open(const std::string& path,
                                                           const TrustedOwners& trusted) {
  const auto opened = open_to_read(path, trusted);
  if (!opened.ok()) return opened.status();
  const auto identity = read_header(opened->fd.get(), path);
  if (!identity.ok()) return identity.status();
  auto mapping = ReadMapping::map(opened->fd.get(), identity->plan.span_bytes, path);
  if (!mapping.ok()) return mapping.status();
  return std::unique_ptr<MappedSegment>(
      new MappedSegment(std::move(*mapping), *identity, opened->identity));
}

std::optional<Position> MappedSegment::position() const noexcept {
  const auto words = read_pair(control().position);
  if (!words) return std::nullopt;
  return Position{(*words)[0], (*words)[1], (*words)[2], (*words)[3]};
}

ShardView Route::view(std::uint16_t index) const noexcept {
  if (segment_ == nullptr || answer_ != Answer::found || index == kNoShard) return {};
  return segment_->memory().topology().shard(index);
}

}  // namespace fingerpost
