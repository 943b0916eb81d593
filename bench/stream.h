// The questions of one measurement, in the order in which every subject gets them.
//
// The ids lie one behind the other, so that reading the questions costs no cache miss that the
// hardware does not foresee: what is measured is the table's memory and not the list's. Immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench/keys.h"

namespace fingerpost::bench {

enum class Mix : std::uint8_t {
  hit,   // each entry equally likely
  miss,  // none is an entry
  zipf,  // entries by Zipf's law, exponent 0.99
};

std::string_view to_string(Mix mix);

// What a subject answers for entry `number`: never 0, which stands for "not there".
constexpr std::uint64_t answer_of(std::uint64_t number) {
  return number + 1;
}

class Stream {
 public:
  Stream(KeyShape shape, std::uint64_t entries, std::uint64_t questions, Mix mix,
         std::uint64_t seed);

  std::span<const std::string_view> ids() const { return ids_; }
  std::size_t size() const { return ids_.size(); }
  // Of question i; kAbsentFrom or more: no entry.
  std::uint64_t number(std::size_t i) const { return numbers_[i]; }
  // The right sum of the first `count` answers.
  std::uint64_t sum(std::size_t count) const { return sums_[count]; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::vector<std::string_view> ids_;
  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace fingerpost::bench
