#include "syncer/freshness.h"

#include <array>

namespace fingerpost {
namespace {

template <std::size_t N>
std::array<std::uint64_t, N> to_words(std::string_view text) {
  std::array<std::uint64_t, N> words{};
  text.copy(reinterpret_cast<char*>(words.data()), sizeof words - 1);
  return words;
}

std::uint64_t word(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}
std::uint64_t word(std::chrono::nanoseconds value) {
  return static_cast<std::uint64_t>(value.count());
}

}  // namespace

void store_policy(ControlBlock<StdAtomics>& control, const FreshnessPolicy& policy,
                  std::string_view source_kind) {
  control.max_snapshot_age_ns.store(word(policy.max_snapshot_age), kRelease);  // pairs: freshness
  control.stale_after_ns.store(word(policy.stale_after), kRelease);            // pairs: freshness
  control.source_kind.store(to_words<1>(source_kind)[0], kRelease);            // pairs: freshness
}

void store_freshness(ControlBlock<StdAtomics>& control, const Freshness& freshness) {
  control.catch_up_by_ns.store(word(freshness.catch_up_by_ns), kRelease);  // pairs: freshness
  control.last_sync_ns.store(word(freshness.last_sync_ns), kRelease);      // pairs: freshness
  control.source_state.store(static_cast<std::uint64_t>(freshness.source),
                             kRelease);  // pairs: freshness
  control.serving.store(static_cast<std::uint64_t>(freshness.serving),
                        kRelease);  // pairs: freshness
}

void store_heartbeat(ControlBlock<StdAtomics>& control, std::int64_t now_ns) {
  control.heartbeat_ns.store(word(now_ns), kRelease);  // pairs: freshness
}

void store_last_error(ControlBlock<StdAtomics>& control, std::string_view text) {
  write_pair(control.last_error, to_words<kErrorTextWords>(text));
}

Freshness load_freshness(const ControlBlock<StdAtomics>& control) {
  Freshness freshness;
  freshness.serving = static_cast<Serving>(control.serving.load(kAcquire));  // pairs: freshness
  freshness.source =
      static_cast<SourceState>(control.source_state.load(kAcquire));  // pairs: freshness
  freshness.last_sync_ns =
      static_cast<std::int64_t>(control.last_sync_ns.load(kAcquire));  // pairs: freshness
  return freshness;
}

}  // namespace fingerpost
