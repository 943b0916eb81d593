// An id as the words a slot holds, so that comparing is comparing words.
#pragma once

#include <array>
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

// Reads the up to eight bytes of `text` from `at`, zero-padded, in memory order.
inline std::uint64_t load_padded_word(std::string_view text, std::size_t at) noexcept {
  std::uint64_t word = 0;
  if (at >= text.size()) return word;
  if (text.size() - at >= 8) {
    std::memcpy(&word, text.data() + at, 8);
  } else {
    std::memcpy(&word, text.data() + at, text.size() - at);
  }
  return word;
}

template <class A>
class PackedId {
 public:
  // `id` has 1 to 255 bytes and must outlive this object.
  explicit PackedId(std::string_view id) noexcept : id_(id) {
    const std::size_t inline_words = is_long() ? A::kIdWords - 1 : A::kIdWords;
    for (std::size_t i = 0; i < inline_words; ++i) {
      words_[i] = load_padded_word(is_long() ? id.substr(0, Shape::kHeadBytes) : id, i * 8);
    }
  }

  std::size_t length() const noexcept { return id_.size(); }
  bool is_long() const noexcept { return Shape::is_long(id_.size()); }
  std::size_t tail_words() const noexcept { return Shape::tail_words(id_.size()); }
  // Word `i` of those that lie inline; a long id has one fewer.
  std::uint64_t inline_word(std::size_t i) const noexcept { return words_[i]; }
  std::uint64_t tail_word(std::size_t i) const noexcept {
    return load_padded_word(id_, Shape::kHeadBytes + i * 8);
  }

 private:
  using Shape = IdShape<A>;
  std::string_view id_;
  std::array<std::uint64_t, A::kIdWords> words_{};
};

}  // namespace fingerpost
