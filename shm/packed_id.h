// An id as the words a slot holds, so that comparing is comparing words.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "shm/atomics.h"

namespace fingerpost {

// How ids lie in the slots of policy A: up to kInlineBytes in place; of longer ones the first
// kHeadBytes, the rest in tail words among the generation's records.
template <class A>
struct IdShape {
  static constexpr std::size_t kInlineBytes = A::kIdWords * 8;
  static constexpr std::size_t kHeadBytes = kInlineBytes - 8;
  static constexpr bool is_long(std::size_t length) noexcept { return length > kInlineBytes; }
  static constexpr std::size_t tail_words(std::size_t length) noexcept {
    return is_long(length) ? (length - kHeadBytes + 7) / 8 : 0;
  }
};

// The last `count` bytes, 1 to 7, of a text of eight or more, zero-padded, in memory order.
[[gnu::always_inline]] inline std::uint64_t load_last_bytes(std::string_view text,
                                                            std::size_t count) noexcept {
  std::uint64_t word;
  std::memcpy(&word, text.data() + text.size() - 8, 8);
  const std::size_t others = 64 - 8 * count;
  return std::endian::native == std::endian::little ? word >> others : word << others;
}

// The up to eight bytes of `text` from `at`, zero-padded, in memory order. Reads nothing outside
// `text`.
inline std::uint64_t load_padded_word(std::string_view text, std::size_t at) noexcept {
  std::uint64_t word = 0;
  if (at >= text.size()) return word;
  const std::size_t left = text.size() - at;
  if (left >= 8) {
    std::memcpy(&word, text.data() + at, 8);
    return word;
  }
  if (text.size() >= 8) return load_last_bytes(text, left);
  for (std::size_t i = 0; i < left; ++i) {
    reinterpret_cast<unsigned char*>(&word)[i] = static_cast<unsigned char>(text[at + i]);
  }
  return word;
}

template <class A>
class PackedId {
 public:
  // `id` has 1 to 255 bytes and must outlive this object.
  explicit PackedId(std::string_view id) noexcept : id_(id) {}

  [[gnu::always_inline]] std::size_t length() const noexcept { return id_.size(); }
  [[gnu::always_inline]] bool is_long() const noexcept { return Shape::is_long(id_.size()); }
  // The words of the slot that hold bytes of the id: so many full ones, then perhaps a rest. What
  // is behind is zero.
  [[gnu::always_inline]] std::size_t full_words() const noexcept {
    return is_long() ? A::kIdWords - 1 : id_.size() / 8;
  }
  [[gnu::always_inline]] bool has_rest() const noexcept {
    return !is_long() && id_.size() % 8 != 0;
  }
  [[gnu::always_inline]] std::uint64_t full_word(std::size_t i) const noexcept {
    std::uint64_t word;
    std::memcpy(&word, id_.data() + i * 8, 8);
    return word;
  }
  [[gnu::always_inline]] std::uint64_t rest_word() const noexcept {
    if (id_.size() >= 8) [[likely]]
      return load_last_bytes(id_, id_.size() % 8);
    return load_padded_word(id_, 0);
  }
  std::size_t tail_words() const noexcept { return Shape::tail_words(id_.size()); }
  std::uint64_t inline_word(std::size_t i) const noexcept { return load_padded_word(id_, i * 8); }
  std::uint64_t tail_word(std::size_t i) const noexcept {
    return load_padded_word(id_, Shape::kHeadBytes + i * 8);
  }

 private:
  using Shape = IdShape<A>;
  std::string_view id_;
};

}  // namespace fingerpost
