// Waiting for the directory to say something else (shm/wait_word.h says why no wake is lost).
//
// A waiter sleeps on one word of the segment and on nothing else: no polling, at most kSleepMax at
// a time. Generation switch, adoption and supersession bump every word. The words of a superseded
// segment are bumped no more, so where its successor cannot be opened yet the sleeps are short.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "reader/reader_impl.h"
#include "shm/hash.h"
#include "shm/wait_word.h"

namespace fingerpost {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kFirstLook = std::chrono::microseconds(500);  // for a successor
constexpr nanoseconds kLastLook = std::chrono::milliseconds(100);

// "For ever" is a time to come, too, and whatever is past is now.
std::int64_t deadline_of(nanoseconds timeout) {
  const std::int64_t begin = boot_time_ns();
  if (timeout <= nanoseconds::zero()) return begin;
  return timeout.count() > INT64_MAX - begin ? INT64_MAX : begin + timeout.count();
}

std::string quoted(std::string_view id) {
  return "'" + std::string(id) + "'";
}

// What a route is, in a sentence about its tenant.
std::string state_of(const Route& route) {
  switch (route.answer()) {
    case Answer::found:
      return "is " + std::string(to_string(route.state())) + " since version " +
             std::to_string(route.epoch());
    case Answer::unknown:
      return "is unknown";
    case Answer::deleted:
      return "is deleted since version " + std::to_string(route.epoch());
    case Answer::split:
      return "is split, and no object was given";
    case Answer::refused:
      return "is not a tenant id";
    case Answer::undetermined:
      break;
  }
  return "cannot be determined";
}

}  // namespace

// `word_of(control)` names the word, `look()` is whether the wait is over; `what` ends the sentence
// of a history that changed, `so_far()` that of a timeout.
template <class WordOf, class Look, class SoFar>
Status Reader::Impl::wait(nanoseconds timeout, const std::string& what, WordOf&& word_of,
                          Look&& look, SoFar&& so_far) {
  const std::int64_t deadline = deadline_of(timeout);
  std::optional<std::uint64_t> incarnation;
  nanoseconds next_look = kFirstLook;
  for (;;) {
    poll();
    const MappedSegment& mapped = segment();
    const bool superseded = mapped.superseded();
    const nanoseconds left(deadline - boot_time_ns());
    nanoseconds sleep = std::min<nanoseconds>(left, kSleepMax);
    if (superseded) {
      sleep = std::min(sleep, next_look);
      next_look = std::min(next_look * 2, kLastLook);
    }
    bool done = false;
    bool rewritten = false;
    look_or_sleep<StdAtomics>(
        word_of(mapped.control()),
        [&] {
          if (const auto position = mapped.position()) {
            if (!incarnation) incarnation = position->incarnation;
            rewritten = position->incarnation != *incarnation;
          }
          done = !rewritten && look();
          return done || rewritten || &segment() != &mapped;
        },
        sleep);
    if (rewritten)
      return {Code::other_history, "the directory's history changed while waiting for " + what};
    if (done) return {};
    if (left <= nanoseconds::zero()) return {Code::timeout, so_far()};
  }
}

// Until `holds(route)`. `follow_in` as resolve takes it.
template <class FollowIn, class Holds>
Result<Route> Reader::Impl::wait_for_route(std::string_view id, const FollowIn& follow_in,
                                           nanoseconds timeout, const std::string& what,
                                           Holds&& holds) {
  Route route = resolve(id, follow_in);
  if (route.answer() == Answer::refused)
    return Status(Code::refused, quoted(id) + " " + state_of(route));
  const std::size_t word = placement_hash(id) % kPlacementWaits;
  Status status = wait(
      timeout, what, [&](const auto& control) -> auto& { return control.placement_waits[word]; },
      [&] {
        route = resolve(id, follow_in);
        return holds(route);
      },
      [&] { return quoted(id) + " " + state_of(route); });
  if (!status.ok()) return status;
  return route;
}

template <class FollowIn>
Result<Route> Reader::Impl::wait_writable(std::string_view id, const FollowIn& follow_in,
                                          nanoseconds timeout) {
  return wait_for_route(id, follow_in, timeout, quoted(id) + " to be writable",
                        [](const Route& route) { return route.writable(); });
}

template <class FollowIn>
Result<Route> Reader::Impl::wait_newer(std::string_view id, const FollowIn& follow_in,
                                       std::uint64_t epoch, nanoseconds timeout) {
  return wait_for_route(id, follow_in, timeout,
                        quoted(id) + " to be newer than epoch " + std::to_string(epoch),
                        [epoch](const Route& route) { return route.epoch() > epoch; });
}

Status Reader::wait_version(std::uint64_t version, nanoseconds timeout) const {
  std::uint64_t served = 0;
  return impl_->wait(
      timeout, "version " + std::to_string(version),
      [](const auto& control) -> auto& { return control.version_wait; },
      [&] { return (served = this->version()) >= version; },
      [&] {
        return "version " + std::to_string(version) + " is not served yet, version " +
               std::to_string(served) + " is";
      });
}

Result<Route> Reader::wait_writable(std::string_view id, nanoseconds timeout) const {
  return impl_->wait_writable(id, Impl::whole_tenant, timeout);
}
Result<Route> Reader::wait_writable(std::string_view id, std::string_view object,
                                    nanoseconds timeout) const {
  return impl_->wait_writable(id, Impl::part_of(object), timeout);
}

Result<Route> Reader::wait_newer(std::string_view id, std::uint64_t epoch,
                                 nanoseconds timeout) const {
  return impl_->wait_newer(id, Impl::whole_tenant, epoch, timeout);
}
Result<Route> Reader::wait_newer(std::string_view id, std::string_view object, std::uint64_t epoch,
                                 nanoseconds timeout) const {
  return impl_->wait_newer(id, Impl::part_of(object), epoch, timeout);
}

}  // namespace fingerpost
