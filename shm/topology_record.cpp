#include "shm/topology_record.h"

#include <cstring>

#include "shm/hash.h"

namespace fingerpost {
namespace {

constexpr std::size_t kHeadWords = 3;
constexpr std::size_t kFixedTexts = 3;

std::uint64_t digest_of(std::span<const std::uint64_t> record) noexcept {
  return content_digest(std::as_bytes(record.subspan(2)));
}

Status too_long(const ShardSpec& spec, std::string_view field, std::size_t bytes,
                std::size_t limit) {
  return {Code::refused, "shard '" + spec.name + "': " + std::string(field) + " has " +
                             std::to_string(bytes) + " bytes, at most " + std::to_string(limit) +
                             " are allowed"};
}

Status too_many(const ShardSpec& spec, std::string_view list, std::size_t count) {
  return {Code::refused, "shard '" + spec.name + "': " + std::to_string(count) + " " +
                             std::string(list) + ", at most " + std::to_string(kShardListMax) +
                             " are allowed"};
}

}  // namespace

Result<std::vector<std::uint64_t>> encode_shard_record(const ShardSpec& spec) {
  if (spec.name.empty()) return Status(Code::refused, "a shard has no name");
  if (spec.name.size() > kShardNameBytesMax)
    return too_long(spec, "the name", spec.name.size(), kShardNameBytesMax);
  if (spec.replicas.size() > kShardListMax) return too_many(spec, "replicas", spec.replicas.size());
  if (spec.attributes.size() > kShardListMax)
    return too_many(spec, "attributes", spec.attributes.size());

  std::vector<std::string_view> texts{spec.name, spec.primary, spec.region};
  texts.insert(texts.end(), spec.replicas.begin(), spec.replicas.end());
  for (const auto& [name, value] : spec.attributes) {
    texts.push_back(name);
    texts.push_back(value);
  }
  std::size_t text_bytes = 0;
  for (const std::string_view text : texts) {
    if (text.size() > kShardFieldBytesMax)
      return too_long(spec, "a field", text.size(), kShardFieldBytesMax);
    text_bytes += text.size();
  }
  const std::size_t body_bytes = texts.size() * sizeof(std::uint16_t) + text_bytes;
  std::vector<std::uint64_t> record(kHeadWords + (body_bytes + 7) / 8);
  record[0] = record.size();
  record[2] = std::uint64_t{spec.weight} << 32 |
              static_cast<std::uint64_t>(spec.attributes.size()) << 16 |
              static_cast<std::uint64_t>(spec.replicas.size());
  char* lengths = reinterpret_cast<char*>(record.data() + kHeadWords);
  char* at = lengths + texts.size() * sizeof(std::uint16_t);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto length = static_cast<std::uint16_t>(texts[i].size());
    std::memcpy(lengths + i * sizeof length, &length, sizeof length);
    if (!texts[i].empty()) std::memcpy(at, texts[i].data(), texts[i].size());
    at += texts[i].size();
  }
  record[1] = digest_of(record);
  return record;
}

ShardView ShardView::parse(std::span<const std::uint64_t> words) noexcept {
  if (words.size() < kHeadWords || words[0] < kHeadWords || words[0] > words.size()) return {};
  const std::uint64_t counts = words[2];
  ShardView view;
  view.weight_ = static_cast<std::uint32_t>(counts >> 32);
  view.attributes_ = static_cast<std::uint16_t>(counts >> 16);
  view.replicas_ = static_cast<std::uint16_t>(counts);
  if (view.replicas_ > kShardListMax || view.attributes_ > kShardListMax) return {};
  const std::size_t texts = kFixedTexts + view.replicas_ + 2 * std::size_t{view.attributes_};
  const std::size_t body_bytes = (words[0] - kHeadWords) * 8;
  std::size_t needed = texts * sizeof(std::uint16_t);
  if (needed > body_bytes) return {};
  const auto* lengths = reinterpret_cast<const std::uint16_t*>(words.data() + kHeadWords);
  for (std::size_t i = 0; i < texts; ++i) needed += lengths[i];
  if (needed > body_bytes) return {};
  view.lengths_ = lengths;
  view.texts_ = reinterpret_cast<const char*>(lengths + texts);
  return view;
}

std::string_view ShardView::text(std::size_t i) const noexcept {
  const std::size_t count = kFixedTexts + replicas_ + 2 * std::size_t{attributes_};
  if (lengths_ == nullptr || i >= count) return {};
  std::size_t offset = 0;
  for (std::size_t k = 0; k < i; ++k) offset += lengths_[k];
  return {texts_ + offset, lengths_[i]};
}

ShardSpec to_spec(const ShardView& view) {
  ShardSpec spec;
  spec.name = view.name();
  spec.primary = view.primary();
  spec.region = view.region();
  spec.weight = view.weight();
  for (std::size_t i = 0; i < view.replica_count(); ++i)
    spec.replicas.emplace_back(view.replica(i));
  for (std::size_t i = 0; i < view.attribute_count(); ++i)
    spec.attributes.emplace_back(view.attribute(i));
  return spec;
}

bool is_whole_record(std::span<const std::uint64_t> words) noexcept {
  return words.size() >= kHeadWords && words[0] >= kHeadWords && words[0] <= words.size() &&
         words[1] == digest_of(words.first(words[0]));
}

}  // namespace fingerpost
