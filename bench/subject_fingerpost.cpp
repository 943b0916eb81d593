#include "bench/subject_fingerpost.h"

#include <sys/mman.h>

#include <array>

#include "bench/machine.h"
#include "shm/segment_open.h"

namespace fingerpost::bench {
namespace {

std::uint64_t to_answer(const Route& route) {
  return route.found() ? route.epoch() : 0;
}

}  // namespace

FingerpostSubject::FingerpostSubject(const std::string& path)
    : reader_(checked(Reader::open(path))) {}

std::uint64_t FingerpostSubject::ask(Way way, const Stream& stream, std::size_t first,
                                     std::size_t last, std::size_t size) {
  if (way == Way::batch) return ask_in_batches(stream, first, last, size);
  return ask_one_by_one(
      way, [this](std::size_t, std::string_view id) { return to_answer(reader_.resolve(id)); },
      stream, first, last);
}

std::uint64_t FingerpostSubject::ask_in_batches(const Stream& stream, std::size_t first,
                                                std::size_t last, std::size_t size) const {
  std::array<Route, 64> routes;
  std::uint64_t sum = 0;
  for (std::size_t at = first; at < last; at += size) {
    const std::size_t count = std::min({size, last - at, routes.size()});
    reader_.resolve_many(stream.ids().subspan(at, count), std::span(routes).first(count));
    for (std::size_t i = 0; i < count; ++i) sum += to_answer(routes[i]);
  }
  return sum;
}

AlignedMapping::AlignedMapping(int fd, std::size_t bytes) : bytes_(bytes) {
  void* room = ::mmap(nullptr, bytes + kHugePageBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::runtime_error("no address space for a mapping");
  const auto from = reinterpret_cast<std::uintptr_t>(room);
  const auto at = (from + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  void* mapped =
      ::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map a segment");
  data_ = static_cast<std::byte*>(mapped);
  if (at != from) ::munmap(room, at - from);
  ::munmap(data_ + bytes, kHugePageBytes - (at - from));
}
AlignedMapping::~AlignedMapping() {
  ::munmap(data_, bytes_);
}

LimitsSubject::LimitsSubject(BenchSegment& segment, const Stream& stream, bool huge_pages)
    : mapping_(checked(open_to_read(segment.path(), TrustedOwners{})).fd.get(),
               segment.segment().identity().plan.span_bytes) {
  const SegmentMemory<StdAtomics, false> memory(mapping_.data(), segment.segment().identity().plan);
  Generation<StdAtomics, false> table;
  if (!memory.generation(root_half(memory.root().load(kAcquire)), table)) {
    throw std::runtime_error("no generation in " + segment.path());
  }
  slots_ = table.slots;
  if (huge_pages) collapse(table.header, table.geometry.bytes());
  for (const std::string_view id : stream.ids()) {
    lines_.push_back(static_cast<std::uint32_t>(segment.writer().table().slot_of(id)));
  }
}

std::uint64_t LimitsSubject::ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                                 std::size_t) {
  // The route word whole: its top bit, 0 here, is what the compiler may not know.
  const auto load = [this](std::size_t i, std::string_view) {
    return slots_[lines_[i]].route.load(kAcquire);
  };
  std::uint64_t state_bits = 0;
  for (std::size_t i = first; i < last; ++i)
    state_bits += encode_inline({State::active, shard_of(stream.number(i)), kNoShard, 0});
  return ask_one_by_one(way, load, stream, first, last) - state_bits;
}

}  // namespace fingerpost::bench
