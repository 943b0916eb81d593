#include "reader/reader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "reader/mapped_segment.h"
#include "shm/boot_clock.h"
#include "shm/resolve.h"
#include "shm/resolve_batch.h"
#include "shm/segment_path.h"
#include "shm/slot_entry.h"
#include "shm/tenant_id.h"

namespace fingerpost {
namespace {

constexpr std::int64_t kAttemptEveryNs = 1'000'000'000;  // a name is asked for at most so often
constexpr std::int64_t kHeartbeatLateNs =
    2'000'000'000;  // then nobody may be left to mark the segment superseded

std::string_view to_string(SourceState state) {
  switch (state) {
    case SourceState::none:
      return "none";
    case SourceState::ok:
      return "ok";
    case SourceState::unavailable:
      return "unavailable";
    case SourceState::other_directory:
      return "other_directory";
    case SourceState::refused:
      return "refused";
  }
  return "none";
}

std::string_view to_string(Serving serving) {
  switch (serving) {
    case Serving::nothing:
      return "nothing";
    case Serving::snapshot:
      return "snapshot";
    case Serving::adopted:
      return "adopted";
    case Serving::caught_up:
      return "caught up";
  }
  return "nothing";
}

// Text that was stored zero-padded in words.
template <std::size_t N>
std::string text_of(const std::array<std::uint64_t, N>& words) {
  std::array<char, N * kWordBytes> bytes;
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return {bytes.data(), strnlen(bytes.data(), bytes.size())};
}

// Whether a reader that stands at `ours` may go on at `theirs`: never back in history.
bool may_follow(const Position& ours, const Position& theirs) {
  return std::pair(theirs.incarnation, theirs.version) >= std::pair(ours.incarnation, ours.version);
}

}  // namespace

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

  bool poll() noexcept {
    MappedSegment& now_mapped = *current.load(kAcquire);
    const std::int64_t now = boot_time_ns();
    const auto heartbeat = static_cast<std::int64_t>(
        now_mapped.control().heartbeat_ns.load(kAcquire));  // pairs: freshness
    const bool late = heartbeat == kTimeUnknown || now - heartbeat > kHeartbeatLateNs;
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

  FreshnessWords freshness() const noexcept { return load_freshness_words(segment().control()); }
};

Reader::Reader(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(std::string_view name_or_path, const ReaderOptions& options) {
  auto impl = std::make_unique<Impl>();
  const auto trusted = trusted_owners(options.owner);
  if (!trusted.ok()) return trusted.status();
  impl->trusted = *trusted;
  auto path = path_to_read(name_or_path, kLayoutVersion);
  if (!path.ok()) return path.status();
  impl->path = std::move(*path);
  auto segment = MappedSegment::open(impl->path, impl->trusted);
  if (!segment.ok()) return segment.status();
  impl->current.store(segment->release());
  return Reader(std::move(impl));
}

Route Reader::resolve(std::string_view id) const noexcept {
  return impl_->resolve(id, Impl::whole_tenant);
}

Route Reader::resolve(std::string_view id, std::string_view object) const noexcept {
  return impl_->resolve(
      id, [object](const MappedSegment&) { return PartOfObject<StdAtomics>{object}; });
}

std::size_t Reader::resolve_all(std::string_view id, std::span<Route> routes) const noexcept {
  const Route whole = impl_->resolve(id, [&](const MappedSegment& mapped) {
    return [&](std::uint64_t word, RecordsView<StdAtomics> records) {
      return load_parts<StdAtomics>(word, records, [&](unsigned k, const RouteFields& route) {
        if (k >= routes.size()) return;
        Resolution part;
        part.answer = answer_of(route);
        part.source = RouteSource::part;
        part.route = route;
        routes[k] = Route(&mapped, part);
      });
    };
  });
  if (whole.answer() == Answer::split) return whole.parts();
  if (!routes.empty()) routes[0] = whole;
  return 1;
}

void Reader::resolve_many(std::span<const std::string_view> ids,
                          std::span<Route> routes) const noexcept {
  const std::size_t count = std::min(ids.size(), routes.size());
  for (std::size_t at = 0; at < count; at += kBatchMax) {
    const std::size_t size = std::min(count - at, kBatchMax);
    impl_->resolve_batch(ids.subspan(at, size), routes.subspan(at, size));
  }
}

bool Reader::poll() const noexcept {
  return impl_->poll();
}

std::optional<std::chrono::nanoseconds> Reader::age() const noexcept {
  impl_->poll();
  const FreshnessWords words = impl_->freshness();
  if (words.last_sync_ns == kTimeUnknown) return std::nullopt;
  return std::chrono::nanoseconds(std::max<std::int64_t>(0, boot_time_ns() - words.last_sync_ns));
}

std::uint64_t Reader::version() const noexcept {
  const auto position = impl_->segment().position();
  return position ? position->version : 0;
}

std::uint64_t Reader::generation() const noexcept {
  return root_generation(impl_->segment().memory().root().load(kAcquire));  // pairs: root
}

Readiness Reader::readiness() const noexcept {
  impl_->poll();
  return judge(impl_->freshness(), boot_time_ns());
}

Status Reader::wait_version(std::uint64_t version, std::chrono::nanoseconds timeout) const {
  // "For ever" is a time to come, too.
  const std::int64_t begin = boot_time_ns();
  const std::int64_t deadline =
      timeout.count() > INT64_MAX - begin ? INT64_MAX : begin + timeout.count();
  std::optional<std::uint64_t> incarnation;
  for (;;) {
    impl_->poll();
    const MappedSegment& mapped = impl_->segment();
    // The word first, then the look: see shm/wait_word.h.
    const std::uint32_t word = load_wait_word<StdAtomics>(mapped.control().version_wait);
    const auto position = mapped.position();
    if (position) {
      if (!incarnation) incarnation = position->incarnation;
      if (position->incarnation != *incarnation) {
        return {Code::other_history, "the directory's history changed while waiting for version " +
                                         std::to_string(version)};
      }
      if (position->version >= version) return {};
    }
    const std::int64_t left = deadline - boot_time_ns();
    if (left <= 0) {
      return {Code::timeout, "version " + std::to_string(version) + " is not served yet, version " +
                                 std::to_string(position ? position->version : 0) + " is"};
    }
    const auto sleep =
        std::min<std::chrono::nanoseconds>(std::chrono::nanoseconds(left), kSleepMax);
    if (!mapped.superseded()) {
      StdAtomics::wait(mapped.control().version_wait, word, sleep);
    } else {
      // Its words are bumped no more; the successor is looked for at the next poll.
      StdAtomics::wait(mapped.control().version_wait, word,
                       std::min<std::chrono::nanoseconds>(sleep, std::chrono::milliseconds(100)));
    }
  }
}

std::uint64_t Reader::undetermined_count() const noexcept {
  return impl_->undetermined.load();
}
std::uint64_t Reader::extra_pass_count() const noexcept {
  return impl_->extra_passes.load();
}

SegmentStatus Reader::status() const {
  impl_->poll();
  const MappedSegment& mapped = impl_->segment();
  const auto& control = mapped.control();
  SegmentStatus status;
  status.path = impl_->path;
  status.layout_version = kLayoutVersion;
  status.directory_id = mapped.identity().directory_id;
  status.capacity = mapped.identity().plan.capacity;
  if (const auto position = mapped.position()) {
    status.incarnation = position->incarnation;
    status.version = position->version;
    status.nonce = position->nonce;
    status.replay_from = position->replay_from;
  }
  const std::uint64_t root = mapped.memory().root().load(kAcquire);  // pairs: root
  status.generation = root_generation(root);
  Generation<StdAtomics, false> table;
  if (mapped.memory().generation(root_half(root), table)) {
    const auto kind =
        static_cast<FallbackKind>(table.header->fallback_kind.load(kAcquire));  // pairs: geometry
    const std::uint64_t records = table.header->records_end.load(kAcquire);  // pairs: records-end
    status.slots = table.geometry.slot_count();
    status.buckets = kind == FallbackKind::buckets ? table.geometry.fallback_count : 0;
    status.hash_shards = kind == FallbackKind::hash ? table.geometry.fallback_count : 0;
    status.table_bytes = table_bytes(table.geometry, records);
  }
  status.reserved_bytes = mapped.identity().plan.fixed_bytes() +
                          control.allocated[0].load(kAcquire) +  // pairs: allocated
                          control.allocated[1].load(kAcquire);   // pairs: allocated
  visit_shards([&](const ShardView&) { ++status.shards; });
  status.source_kind = text_of(std::array{control.source_kind.load(kAcquire)});  // pairs: freshness
  const FreshnessWords words = impl_->freshness();
  status.source_state = to_string(words.source);
  status.serving = to_string(words.serving);
  if (const auto text = read_pair(control.last_error)) status.last_error = text_of(*text);
  for (std::size_t i = 0; i < kCountersMax; ++i)
    status.counters[i] = control.counters[i].load(kAcquire);  // pairs: counter
  return status;
}

Status Reader::visit_entries(
    const std::function<void(std::string_view, const Route&)>& visit) const {
  const MappedSegment& mapped = impl_->segment();
  const std::uint64_t root = mapped.memory().root().load(kAcquire);  // pairs: root
  Generation<StdAtomics, false> table;
  if (!mapped.memory().generation(root_half(root), table)) {
    return {Code::unavailable, "the generation was replaced while it was looked at"};
  }
  const auto records = table.records_view();
  const auto pass_on = [&](std::string_view id, RouteSource source, std::uint64_t word) {
    Resolution resolution;
    resolution.route = load_route(word, records);
    resolution.answer = answer_of(resolution.route);
    resolution.source = source;
    visit(id, Route(&mapped, resolution));
  };
  SlotEntry entry;
  for (std::uint64_t slot = 0; slot < table.geometry.slot_count(); ++slot) {
    const Group<StdAtomics>& group = table.groups[slot / kGroupSlots];
    const std::uint64_t bytes =
        (slot % kGroupSlots < 8 ? group.low : group.high).load(kAcquire);  // pairs: fingerprint
    if (!is_live(static_cast<std::uint8_t>(bytes >> slot % 8 * 8))) continue;
    if (read_slot_entry(table.slots[slot], records, entry)) {
      pass_on(entry.id(), RouteSource::override_entry, entry.route);
    }
  }
  const bool hash = static_cast<FallbackKind>(table.header->fallback_kind.load(kAcquire)) ==
                    FallbackKind::hash;  // pairs: geometry
  for (std::uint64_t i = 0; i < table.geometry.fallback_count; ++i) {
    const std::uint64_t word = table.fallback[i].load(kAcquire);  // pairs: fallback
    if (word == kNoRoute) continue;
    pass_on((hash ? "hash:" : std::string(kBucketPrefix)) + std::to_string(i),
            hash ? RouteSource::hash : RouteSource::bucket, word);
  }
  if (mapped.memory().root().load(kAcquire) != root) {  // pairs: root
    return {Code::unavailable, "the generation was replaced while it was looked at"};
  }
  return {};
}

void Reader::visit_shards(const std::function<void(const ShardView&)>& visit) const {
  const TopologyView<StdAtomics> topology = impl_->segment().memory().topology();
  for (std::uint64_t i = 0; i < topology.shard_count(); ++i) {
    const ShardView shard = topology.shard(i);
    if (shard && !topology.is_removed(i)) visit(shard);
  }
}

}  // namespace fingerpost
