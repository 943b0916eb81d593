#include "shm/segment_header.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

namespace fingerpost {
namespace {

constexpr std::uint64_t kFeaturesKnown = 0;

std::array<std::uint64_t, 2> to_words(const std::array<std::uint8_t, 16>& bytes) {
  return std::bit_cast<std::array<std::uint64_t, 2>>(bytes);
}

std::array<std::uint8_t, 16> to_bytes(std::uint64_t first, std::uint64_t second) {
  return std::bit_cast<std::array<std::uint8_t, 16>>(std::array{first, second});
}

Status other_layout(const std::string& path, const std::string& what, std::uint64_t has,
                    std::uint64_t ours) {
  return {Code::other_layout, path + ": " + what + " is " + std::to_string(has) +
                                  ", this build reads " + std::to_string(ours)};
}

}  // namespace

void write_header(FileHeader<StdAtomics>& header, const SegmentIdentity& identity) noexcept {
  const auto directory = to_words(identity.directory_id);
  const auto boot = to_words(identity.boot_id);
  const SegmentPlan& plan = identity.plan;
  header.magic.store(kMagic, kRelease);                        // pairs: complete
  header.layout_version.store(kLayoutVersion, kRelease);       // pairs: complete
  header.fingerprint.store(kFingerprint, kRelease);            // pairs: complete
  header.features.store(kFeaturesKnown, kRelease);             // pairs: complete
  header.span_bytes.store(plan.span_bytes, kRelease);          // pairs: complete
  header.capacity.store(plan.capacity, kRelease);              // pairs: complete
  header.control_at.store(plan.control_at, kRelease);          // pairs: complete
  header.topology_at.store(plan.topology_at, kRelease);        // pairs: complete
  header.topology_bytes.store(plan.topology_bytes, kRelease);  // pairs: complete
  header.unknown_at.store(plan.half_at[0], kRelease);          // pairs: complete
  header.unknown_bytes.store(0, kRelease);                     // pairs: complete
  header.half_bytes.store(plan.half_bytes, kRelease);          // pairs: complete
  for (std::size_t i = 0; i < 2; ++i) {
    header.directory_id[i].store(directory[i], kRelease);  // pairs: complete
    header.boot_id[i].store(boot[i], kRelease);            // pairs: complete
    header.half_at[i].store(plan.half_at[i], kRelease);    // pairs: complete
  }
}

void store_complete(FileHeader<StdAtomics>& header) noexcept {
  header.complete.store(kComplete, kRelease);  // pairs: complete
}

Result<SegmentIdentity> read_header(int fd, const std::string& path) {
  FileHeader<StdAtomics> header{};
  std::array<std::byte, sizeof header> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::from_errno(errno, "cannot read the header of " + path);
    if (n == 0) return Status(Code::not_ready, path + " ends inside its header");
    have += static_cast<std::size_t>(n);
  }
  std::memcpy(static_cast<void*>(&header), bytes.data(), bytes.size());

  if (header.complete.load(kAcquire) != kComplete) {  // pairs: complete
    return Status(Code::not_ready, path + " is not complete");
  }
  if (header.magic.load(kAcquire) != kMagic) {
    return Status(Code::other_layout, path + " is not a Fingerpost segment");
  }
  const std::uint64_t layout = header.layout_version.load(kAcquire);
  if (layout != kLayoutVersion)
    return other_layout(path, "the layout version", layout, kLayoutVersion);
  const std::uint64_t fingerprint = header.fingerprint.load(kAcquire);
  if (fingerprint != kFingerprint) {
    return other_layout(path, "the layout fingerprint (byte order, word, line and struct sizes)",
                        fingerprint, kFingerprint);
  }
  const std::uint64_t features = header.features.load(kAcquire);
  if ((features & ~kFeaturesKnown) != 0)
    return other_layout(path, "the feature mask", features, kFeaturesKnown);

  SegmentIdentity identity;
  identity.plan = load_plan(header);
  identity.directory_id =
      to_bytes(header.directory_id[0].load(kAcquire), header.directory_id[1].load(kAcquire));
  identity.boot_id = to_bytes(header.boot_id[0].load(kAcquire), header.boot_id[1].load(kAcquire));
  if (!identity.plan.plausible())
    return Status(Code::corrupt, path + ": the header's offsets make no sense");
  struct stat about {};
  if (fstat(fd, &about) != 0) return Status::from_errno(errno, "cannot examine " + path);
  if (static_cast<std::uint64_t>(about.st_size) < identity.plan.fixed_bytes()) {
    return Status(Code::corrupt, path + " has " + std::to_string(about.st_size) +
                                     " bytes, its header promises at least " +
                                     std::to_string(identity.plan.fixed_bytes()));
  }
  const auto boot = current_boot_id();
  if (!boot.ok()) return boot.status();
  if (*boot != identity.boot_id)
    return Status(Code::not_ready, path + " was made in another boot of this machine");
  return identity;
}

}  // namespace fingerpost
