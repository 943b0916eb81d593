// The answer to one lookup: a self-contained value of 32 bytes. Nothing in it points into a
// generation; `shard()` and `target()` look into the topology, which stays valid as long as the
// Reader lives.
#pragma once

#include <cstdint>

#include "shm/resolve_pass.h"
#include "shm/route_fields.h"
#include "shm/topology_record.h"

namespace fingerpost {

class MappedSegment;

class Route {
 public:
  Route() noexcept = default;
  Route(const MappedSegment* segment, const Resolution& resolution) noexcept
      : segment_(segment),
        epoch_(resolution.route.epoch),
        shard_(resolution.route.shard),
        target_(resolution.route.target),
        parts_(resolution.route.parts),
        answer_(resolution.answer),
        source_(resolution.source),
        state_(resolution.route.state) {}

  // found | unknown | deleted | split | refused (not an id) | undetermined (treat it like a miss)
  Answer answer() const noexcept { return answer_; }
  bool found() const noexcept { return answer_ == Answer::found; }

  // Which rule answered; none unless found, deleted or split. A split is the tenant's own entry:
  // override; an object of it is answered for by a part.
  RouteSource source() const noexcept { return source_; }
  State state() const noexcept { return state_; }
  // The directory version that last changed this route: send it along, so that a shard can refuse
  // an older one. Of a split tenant: the highest of its parts'.
  std::uint64_t epoch() const noexcept { return epoch_; }

  // Of a split tenant, and of a part of one: how many parts there are. 0 for all others.
  unsigned parts() const noexcept { return parts_; }

  // Whether writes may go to shard() now. false while FROZEN: tell the client to retry. While
  // MIGRATING they still go to shard(). A state that this build does not know is not writable.
  bool writable() const noexcept {
    return found() && (state_ == State::active || state_ == State::migrating);
  }

  // The owner, with its addresses as of now. Empty unless found; bounded, no system call.
  ShardView shard() const noexcept { return view(shard_); }
  // Where a migrating tenant is going; empty otherwise.
  ShardView target() const noexcept { return view(target_); }

 private:
  ShardView view(std::uint16_t index) const noexcept;

  const MappedSegment* segment_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::uint16_t shard_ = kNoShard;
  std::uint16_t target_ = kNoShard;
  std::uint16_t parts_ = 0;
  Answer answer_ = Answer::undetermined;
  RouteSource source_ = RouteSource::none;
  State state_ = State::none;
};
static_assert(sizeof(Route) == 32);

}  // namespace fingerpost
