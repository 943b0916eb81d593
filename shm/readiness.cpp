#include "shm/readiness.h"

#include "shm/counters.h"

namespace fingerpost {
namespace {

std::string_view why_not_ready(const FreshnessWords& words, std::int64_t now_ns) noexcept {
  if (words.serving == Serving::nothing) return "nothing was loaded yet";
  if (words.full) return "there is no room for all rows: the capacity is reached, or memory is lacking";
  if (words.last_sync_ns == kTimeUnknown) return "the age of the data is unknown";
  const std::int64_t age = now_ns - words.last_sync_ns;
  if (age > static_cast<std::int64_t>(words.max_snapshot_age_ns))
    return "the data is older than max_snapshot_age";
  if (words.serving != Serving::caught_up && now_ns < words.catch_up_by_ns)
    return "waiting to catch up with the source";
  return {};
}

std::string_view why_stale(const FreshnessWords& words, std::int64_t now_ns) noexcept {
  if (words.superseded) return "the segment is superseded and its successor could not be opened";
  if (words.last_sync_ns == kTimeUnknown) return "the age of the data is unknown";
  if (words.source == SourceState::other_directory) return "the source holds another directory";
  if (words.serving != Serving::caught_up)
    return "not caught up with the source since the syncer started";
  if (now_ns - words.last_sync_ns > static_cast<std::int64_t>(words.stale_after_ns)) {
    return "the source was last read longer ago than stale_after";
  }
  return {};
}

}  // namespace

FreshnessWords load_freshness_words(const ControlBlock<StdAtomics>& control) noexcept {
  FreshnessWords words;
  words.serving = static_cast<Serving>(control.serving.load(kAcquire));          // pairs: freshness
  words.source = static_cast<SourceState>(control.source_state.load(kAcquire));  // pairs: freshness
  words.last_sync_ns =
      static_cast<std::int64_t>(control.last_sync_ns.load(kAcquire));  // pairs: freshness
  words.catch_up_by_ns =
      static_cast<std::int64_t>(control.catch_up_by_ns.load(kAcquire));    // pairs: freshness
  words.max_snapshot_age_ns = control.max_snapshot_age_ns.load(kAcquire);  // pairs: freshness
  words.stale_after_ns = control.stale_after_ns.load(kAcquire);            // pairs: freshness
  words.superseded = root_superseded(control.root.load(kAcquire));         // pairs: root
  words.full = control.counters[static_cast<std::size_t>(Counter::refused_for_room)].load(
                   kAcquire) != 0;  // pairs: counter
  return words;
}

Readiness judge(const FreshnessWords& words, std::int64_t now_ns) noexcept {
  const std::string_view not_ready = why_not_ready(words, now_ns);
  const std::string_view stale = why_stale(words, now_ns);
  return {not_ready.empty(), !stale.empty(), not_ready.empty() ? stale : not_ready};
}

}  // namespace fingerpost
