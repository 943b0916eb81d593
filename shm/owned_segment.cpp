#include "shm/owned_segment.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shm/number_text.h"
#include "shm/segment_open.h"

namespace fingerpost {

Reserve OwnedSegment::reserve() {
  return [this](unsigned half, std::uint64_t bytes) {
    const std::uint64_t have = memory().control().allocated[half].load(kAcquire);
    return budget_.reserve(fd(), identity_.plan.half_at[half] + have, bytes - have, path_);
  };
}

Result<std::unique_ptr<OwnedSegment>> OwnedSegment::create(const std::string& path,
                                                           const SegmentAccess& access,
                                                           const SegmentIdentity& identity) {
  auto file = HalfMadeSegment::create(path, access);
  if (!file.ok()) return file.status();
  const MemoryBudget budget;
  if (Status s = budget.reserve(file->fd(), 0, identity.plan.fixed_bytes(), path); !s.ok())
    return s;
  auto mapping = WriteMapping::map(file->fd(), identity.plan.span_bytes, path);
  if (!mapping.ok()) return mapping.status();
  std::unique_ptr<OwnedSegment> segment(new OwnedSegment(path, identity, std::move(*mapping)));
  segment->file_ = file->identity();
  segment->half_made_.emplace(std::move(*file));
  const auto locked = lock_segment(segment->fd(), path);
  if (!locked.ok()) return locked.status();
  write_header(segment->memory().header(), identity);
  segment->writer_.emplace(
      SegmentWriter<StdAtomics>::initialise(segment->memory(), segment->reserve()));
  return segment;
}

Result<std::unique_ptr<OwnedSegment>> OwnedSegment::adopt(
    const std::string& path, const SegmentAccess& access,
    const std::optional<DirectoryId>& directory_id) {
  auto opened = open_to_adopt(path, access.owner);
  if (!opened.ok()) return opened.status();
  const auto locked = lock_segment(opened->fd.get(), path);
  if (!locked.ok()) return locked.status();
  const auto identity = read_header(opened->fd.get(), path);
  if (!identity.ok()) return identity.status();
  if (directory_id && identity->directory_id != *directory_id) {
    return Status(Code::other_directory,
                  path + " serves directory " + to_string(identity->directory_id) +
                      ", the source is directory " + to_string(*directory_id));
  }
  if (Status s = apply_access(opened->fd.get(), access, path); !s.ok()) return s;
  auto mapping = WriteMapping::map(opened->fd.get(), identity->plan.span_bytes, path);
  if (!mapping.ok()) return mapping.status();
  std::unique_ptr<OwnedSegment> segment(new OwnedSegment(path, *identity, std::move(*mapping)));
  segment->fd_ = std::move(opened->fd);
  segment->file_ = opened->identity;
  if (Status s = segment->check_allocated(); !s.ok()) return s;
  auto writer = SegmentWriter<StdAtomics>::adopt(segment->memory(), segment->reserve());
  if (!writer.ok()) return writer.status();
  segment->writer_.emplace(std::move(*writer));
  // What the dead writer reserved without having said so is of use to nobody.
  for (unsigned half = 0; half < 2; ++half) {
    const std::uint64_t have = segment->memory().control().allocated[half].load(kAcquire);
    const Status status = give_back(segment->fd(), identity->plan.half_at[half] + have,
                                    identity->plan.half_bytes - have, path);
    if (!status.ok()) return status;
  }
  if (*locked == SegmentLock::reader_in_the_way) segment->writer_->add(Counter::foreign_read_locks);
  return segment;
}

Status OwnedSegment::check_allocated() {
  if (Status s = check_length(); !s.ok()) return s;
  for (unsigned half = 0; half < 2; ++half) {
    const std::uint64_t have = memory().control().allocated[half].load(kAcquire);
    if (have != 0 && have > length_ - std::min(length_, identity_.plan.half_at[half])) {
      return {Code::corrupt, path_ + " was cut to " + grouped(length_) + " bytes, it had " +
                                 grouped(identity_.plan.half_at[half] + have)};
    }
  }
  return {};
}

Status OwnedSegment::publish_first() {
  return publish(&HalfMadeSegment::publish_first);
}
Status OwnedSegment::publish_successor() {
  return publish(&HalfMadeSegment::publish_successor);
}

Status OwnedSegment::publish(Status (HalfMadeSegment::*give_name)()) {
  if (Status s = check_length(); !s.ok()) return s;
  store_complete(memory().header());
  if (Status s = ((*half_made_).*give_name)(); !s.ok()) return s;
  fd_ = std::move(*half_made_).take_fd();
  half_made_.reset();
  return {};
}

Status OwnedSegment::lock_memory() {
  const SegmentPlan& plan = identity_.plan;
  const auto& control = memory().control();
  const std::uint64_t starts[3] = {0, plan.half_at[0], plan.half_at[1]};
  const std::uint64_t lengths[3] = {plan.fixed_bytes(),
                                    control.allocated[0].load(kAcquire),   // pairs: allocated
                                    control.allocated[1].load(kAcquire)};  // pairs: allocated
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t more = lengths[i] - locked_[i];
    if (more == 0) continue;
    if (::mlock(mapping_.data() + starts[i] + locked_[i], more) != 0) {
      const int error = errno;
      rlimit limit{};
      ::getrlimit(RLIMIT_MEMLOCK, &limit);
      const std::string most =
          limit.rlim_cur == RLIM_INFINITY ? "unlimited" : grouped(limit.rlim_cur);
      return Status::from_errno(error, "cannot lock " + grouped(more) + " bytes of " + path_ +
                                           " in memory (RLIMIT_MEMLOCK is " + most + ")");
    }
    locked_[i] = lengths[i];
  }
  return {};
}

Result<std::string> OwnedSegment::hold_access(const SegmentAccess& access) {
  const auto found = access_of(fd(), path_);
  if (!found.ok()) return found.status();
  if (*found == access) return std::string();
  if (Status s = apply_access(fd(), access, path_); !s.ok()) return s;
  return access_text(*found);
}

Status OwnedSegment::check_length() {
  struct stat info {};
  if (::fstat(fd(), &info) != 0) return Status::from_errno(errno, "cannot examine " + path_);
  const auto length = static_cast<std::uint64_t>(info.st_size);
  if (length < length_) {
    return {Code::corrupt,
            path_ + " was cut to " + grouped(length) + " bytes, it had " + grouped(length_)};
  }
  length_ = length;
  return {};
}

Status OwnedSegment::hold_lock() {
  const auto locked = lock_segment(fd(), path_);
  return locked.ok() ? Status() : locked.status();
}

}  // namespace fingerpost
