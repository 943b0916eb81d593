#include "reader/reader.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "reader/reader_impl.h"
#include "shm/slot_entry.h"

namespace fingerpost {
namespace {

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

}  // namespace

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
  return impl_->resolve(id, Impl::part_of(object));
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
  if (const auto heartbeat = Impl::heartbeat_age_ns(mapped, boot_time_ns())) {
    status.heartbeat_age = std::chrono::nanoseconds(*heartbeat);
  }
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
