// A segment's bytes in this process's address space. Its source is the only file that knows
// Boost.Interprocess.
//
// The span may exceed the file's end: address space is all it costs, as long as nobody touches what
// is not reserved. (Under mlockall(MCL_FUTURE) the kernel fills it with real pages: such processes
// map less.) Mappings are left out of core dumps, which would otherwise read, and so allocate, the
// holes.
//
// Thread-safety: values; the bytes have their own rules. Safe across fork: a child inherits the
// mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "shm/status.h"

namespace boost::interprocess {
class mapped_region;
}

namespace fingerpost {

// What both roles share: owns the mapping, unmaps at the end. Move-only.
class MappedSpan {
 public:
  MappedSpan(MappedSpan&&) noexcept;
  MappedSpan& operator=(MappedSpan&&) noexcept;
  ~MappedSpan();

  std::uint64_t size() const noexcept;

 protected:
  explicit MappedSpan(std::unique_ptr<boost::interprocess::mapped_region> region) noexcept;
  void* address() const noexcept;

 private:
  std::unique_ptr<boost::interprocess::mapped_region> region_;
};

// PROT_READ: a reader cannot write what it maps.
class ReadMapping : public MappedSpan {
 public:
  // The first `bytes` of `fd`, which may be closed afterwards. `path` is for messages.
  // no_space: "cannot map N bytes of PATH", with the address space limit if there is one ·
  // not_permitted · refused: nothing to map
  static Result<ReadMapping> map(int fd, std::uint64_t bytes, const std::string& path);
  const std::byte* data() const noexcept { return static_cast<const std::byte*>(address()); }

 private:
  using MappedSpan::MappedSpan;
};

// PROT_READ | PROT_WRITE, for the one writer.
class WriteMapping : public MappedSpan {
 public:
  static Result<WriteMapping> map(int fd, std::uint64_t bytes, const std::string& path);
  std::byte* data() const noexcept { return static_cast<std::byte*>(address()); }

 private:
  using MappedSpan::MappedSpan;
};

}  // namespace fingerpost
