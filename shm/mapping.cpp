#include "shm/mapping.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <limits>
#include <utility>

#include "shm/number_text.h"

namespace fingerpost {
namespace {

namespace bip = boost::interprocess;

// What mapped_region asks of a mappable, over a descriptor that was opened and checked elsewhere.
struct OpenDescriptor {
  int fd;
  bip::mapping_handle_t get_mapping_handle() const {
    return bip::ipcdetail::mapping_handle_from_file_handle(fd);
  }
};

Status why_not_mapped(int error, std::uint64_t bytes, const std::string& path) {
  const std::string what = "cannot map " + grouped(bytes) + " bytes of " + path;
  rlimit limit{};
  if (error == ENOMEM && ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return {Code::no_space, what + ": the address space of this process is limited to " +
                                grouped(limit.rlim_cur) + " bytes (RLIMIT_AS)"};
  }
  return Status::from_errno(error, what);
}

Result<std::unique_ptr<bip::mapped_region>> map_shared(int fd, bip::mode_t mode,
                                                       std::uint64_t bytes,
                                                       const std::string& path) {
  if (bytes == 0 || bytes > std::numeric_limits<std::size_t>::max()) {
    return Status(Code::refused, "cannot map " + grouped(bytes) + " bytes of " + path);
  }
  try {
    auto region = std::make_unique<bip::mapped_region>(OpenDescriptor{fd}, mode, 0,
                                                       static_cast<std::size_t>(bytes));
    ::madvise(region->get_address(), region->get_size(), MADV_DONTDUMP);
    return region;
  } catch (const bip::interprocess_exception& failure) {
    return why_not_mapped(failure.get_native_error(), bytes, path);
  } catch (const std::bad_alloc&) {
    return why_not_mapped(ENOMEM, bytes, path);
  }
}

}  // namespace

MappedSpan::MappedSpan(std::unique_ptr<bip::mapped_region> region) noexcept
    : region_(std::move(region)) {}
MappedSpan::MappedSpan(MappedSpan&&) noexcept = default;
MappedSpan& MappedSpan::operator=(MappedSpan&&) noexcept = default;
MappedSpan::~MappedSpan() = default;

std::uint64_t MappedSpan::size() const noexcept {
  return region_ ? region_->get_size() : 0;
}
void* MappedSpan::address() const noexcept {
  return region_ ? region_->get_address() : nullptr;
}

Result<ReadMapping> ReadMapping::map(int fd, std::uint64_t bytes, const std::string& path) {
  auto region = map_shared(fd, bip::read_only, bytes, path);
  if (!region) return region.status();
  return ReadMapping(*std::move(region));
}

Result<WriteMapping> WriteMapping::map(int fd, std::uint64_t bytes, const std::string& path) {
  auto region = map_shared(fd, bip::read_write, bytes, path);
  if (!region) return region.status();
  return WriteMapping(*std::move(region));
}

}  // namespace fingerpost
