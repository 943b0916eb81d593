// What a Reader is made of. Included by the reader's own sources and nothing else.
//
// Thread-safety: any number of threads. Mappings are only ever added, so whatever a thread has in
// hand stays where it is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "reader/mapped_segment.h"
#include "reader/reader.h"
#include "shm/boot_clock.h"
#include "shm/resolve.h"
#include "shm/resolve_batch.h"
#include "shm/segment_path.h"
#include "shm/tenant_id.h"

namespace fingerpost {

inline constexpr std::int64_t kAttemptEveryNs =
    1'000'000'000;  // a name is asked for at most so often
inline constexpr std::int64_t kHeartbeatLateNs =
    2'000'000'000;  // then nobody may be left to mark the segment superseded

// Whether a reader that stands at `ours` may go on at `theirs`: never back in history.
inline bool may_follow(const Position& ours, const Position& theirs) {
  return std::pair(theirs.incarnation, theirs.version) >= std::pair(ours.incarnation, ours.version);
}

struct Reader::Impl {
  std::string path;
  TrustedOwners trusted;
  std::atomic<MappedSegment*> current{nullptr};
  std::atomic<std::int64_t> next_attempt_ns{0};
  std::atomic<std::uint64_t> undetermined{0};
  std::atomic<std::uint64_t> extra_passes{0};

  ~Impl() { delete current.load(); }

  const MappedSegment& segment() const noexcept { return *current.load(kAcquire); }

  // Maps what the name leads to now, if it may follow `from`. Never takes anything away: at worst,
  // with no memory left for the attempt itself, nothing changes.
  bool follow(MappedSegment& from) noexcept {
    try {
      return follow_name(from);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  bool follow_name(MappedSegment& from) {
    auto opened = MappedSegment::open(path, trusted);
    if (!opened.ok()) return false;
    std::unique_ptr<MappedSegment> next = std::move(*opened);
    const auto ours = from.position();
    const auto theirs = next->position();
    if (next->file() == from.file() ||
        next->identity().directory_id != from.identity().directory_id || !ours || !theirs ||
        !may_follow(*ours, *theirs)) {
      return false;
    }
    MappedSegment* expected = &from;
    next->older.reset(&from);
    if (current.compare_exchange_strong(expected, next.get())) {
      next.release();
      return true;
    }
    next->older.release();  // another thread was first
    return false;
  }

  // nullopt: no syncer showed that it was alive yet.
  static std::optional<std::int64_t> heartbeat_age_ns(const MappedSegment& mapped,
                                                      std::int64_t now) noexcept {
    const auto heartbeat = static_cast<std::int64_t>(
        mapped.control().heartbeat_ns.load(kAcquire));  // pairs: freshness
    if (heartbeat == kTimeUnknown) return std::nullopt;
    return now - heartbeat;
  }

  bool poll() noexcept {
    MappedSegment& now_mapped = *current.load(kAcquire);
    const std::int64_t now = boot_time_ns();
    const auto heartbeat = heartbeat_age_ns(now_mapped, now);
    const bool late = !heartbeat || *heartbeat > kHeartbeatLateNs;
    if (!now_mapped.superseded() && !late) return false;
    std::int64_t due = next_attempt_ns.load();
    if (now < due || !next_attempt_ns.compare_exchange_strong(due, now + kAttemptEveryNs))
      return false;
    if (name_state(path, now_mapped.file()) != NameState::replaced) return false;
    return follow(now_mapped);
  }

  void count(const Resolution& resolution) noexcept {
    if (resolution.passes <= 1) return;
    extra_passes.fetch_add(static_cast<std::uint64_t>(resolution.passes - 1));
    if (resolution.answer == Answer::undetermined) undetermined.fetch_add(1);
  }

  Route to_route(const MappedSegment& segment, std::string_view id,
                 const Resolution& resolution) const noexcept {
    // Nothing invalid is ever in the table, so only what was not found there needs to be judged.
    if (resolution.source != RouteSource::override_entry && resolution.route.parts == 0 &&
        why_not_tenant_id(id)) {
      return refused();
    }
    return {&segment, resolution};
  }

  // What follows a word to its record, for a lookup in a segment.
  static WholeTenant<StdAtomics> whole_tenant(const MappedSegment&) noexcept { return {}; }
  static auto part_of(std::string_view object) noexcept {
    return [object](const MappedSegment&) { return PartOfObject<StdAtomics>{object}; };
  }

  // Whether `found`, of a first pass, is the answer, and nothing remains to be done.
  [[gnu::always_inline]] static bool is_plain(std::string_view id,
                                              const Resolution& found) noexcept {
    return !root_superseded(found.root) &&
           (found.source == RouteSource::override_entry || is_plain_tenant_id(id));
  }

  // `follow_in(mapped)` gives what follows a word to its record there.
  template <class FollowIn>
  [[gnu::always_inline]] Route resolve(std::string_view id, const FollowIn& follow_in) noexcept {
    if (id.empty() || id.size() > kIdBytesMax) [[unlikely]]
      return refused();
    MappedSegment& mapped = *current.load(kAcquire);
    Resolution found;
    if (resolve_at_home<StdAtomics, false>(mapped.memory(), id, found) && is_plain(id, found))
        [[likely]]
      return {&mapped, found};
    return resolve_whole(id, mapped, follow_in);
  }
  template <class FollowIn>
  [[gnu::noinline]] Route resolve_whole(std::string_view id, MappedSegment& mapped,
                                        const FollowIn& follow_in) noexcept {
    Resolution found;
    if (resolve_at_home<StdAtomics, true>(mapped.memory(), id, found) && is_plain(id, found))
      return {&mapped, found};
    return conclude(id, mapped,
                    resolve_following<StdAtomics>(mapped.memory(), id, follow_in(mapped)),
                    follow_in);
  }
  template <class FollowIn>
  Route conclude(std::string_view id, MappedSegment& mapped, const Resolution& first,
                 const FollowIn& follow_in) noexcept {
    if (root_superseded(first.root) && mapped.claim_successor() && follow(mapped)) {
      MappedSegment& successor = *current.load(kAcquire);
      const Resolution resolution =
          resolve_following<StdAtomics>(successor.memory(), id, follow_in(successor));
      count(resolution);
      return to_route(successor, id, resolution);
    }
    count(first);
    return to_route(mapped, id, first);
  }

  // At most kBatchMax.
  void resolve_batch(std::span<const std::string_view> ids, std::span<Route> routes) noexcept {
    MappedSegment& mapped = *current.load(kAcquire);
    const bool askable = std::all_of(ids.begin(), ids.end(), [](std::string_view id) {
      return !id.empty() && id.size() <= kIdBytesMax;
    });
    if (!askable || mapped.superseded()) {
      for (std::size_t i = 0; i < ids.size(); ++i) routes[i] = resolve(ids[i], whole_tenant);
      return;
    }
    fingerpost::resolve_batch<StdAtomics>(
        mapped.memory(), ids, [&](std::size_t i, bool done, const Resolution& found) {
          if (done && is_plain(ids[i], found)) [[likely]] {
            std::construct_at(&routes[i], &mapped, found);  // in place: shm/generation.h
          } else {
            routes[i] = resolve_whole(ids[i], mapped, whole_tenant);
          }
        });
  }

  static Route refused() noexcept {
    Resolution resolution;
    resolution.answer = Answer::refused;
    return {nullptr, resolution};
  }

  // The waits: reader/reader_wait.cpp.
  template <class WordOf, class Look, class SoFar>
  Status wait(std::chrono::nanoseconds timeout, const std::string& what, WordOf&& word_of,
              Look&& look, SoFar&& so_far);
  template <class FollowIn, class Holds>
  Result<Route> wait_for_route(std::string_view id, const FollowIn& follow_in,
                               std::chrono::nanoseconds timeout, const std::string& what,
                               Holds&& holds);
  template <class FollowIn>
  Result<Route> wait_writable(std::string_view id, const FollowIn& follow_in,
                              std::chrono::nanoseconds timeout);
  template <class FollowIn>
  Result<Route> wait_newer(std::string_view id, const FollowIn& follow_in, std::uint64_t epoch,
                           std::chrono::nanoseconds timeout);

  FreshnessWords freshness() const noexcept { return load_freshness_words(segment().control()); }
};

}  // namespace fingerpost
