// What is measured, behind one interface, so that every subject gets the same questions in the same
// loops. The interface is crossed once per pass, never per lookup.
//
// A subject answers answer_of(number) for the id of entry `number`, and 0 for an id it does not
// have. One thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/stream.h"

namespace fingerpost::bench {

// What every subject is filled with: entries 0 to `entries` - 1 of one shape.
struct Contents {
  KeyShape shape = KeyShape::uuid;
  std::uint64_t entries = 0;
};

enum class Way : std::uint8_t {
  independent,  // the next question does not wait for the answer before
  dependent,    // it does
  batch,        // several at once, through what the subject has for that
};

std::string_view to_string(Way way);

class Subject {
 public:
  virtual ~Subject() = default;

  virtual bool can(Way way) const { return way != Way::batch; }
  // Whether it is so slow that a pass takes fewer questions.
  virtual std::size_t questions_max() const { return ~std::size_t{0}; }
  // Whether its answers come from another process: then the clock on the wall counts, else the
  // thread's own.
  virtual bool waits() const { return false; }
  // Asks the questions [first, last) and returns the sum of the answers. `size` is that of a batch.
  virtual std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                            std::size_t size) = 0;
};

// The loops. `lookup(i, id)` answers question i.
template <class Lookup>
std::uint64_t ask_independent(Lookup&& lookup, const Stream& stream, std::size_t first,
                              std::size_t last) {
  const std::string_view* ids = stream.ids().data();
  std::uint64_t sum = 0;
  for (std::size_t i = first; i < last; ++i) sum += lookup(i, ids[i]);
  return sum;
}

// The place of the next question depends on the last answer, by a zero that neither the compiler
// nor the processor knows to be one: the top bit of an answer.
template <class Lookup>
std::uint64_t ask_dependent(Lookup&& lookup, const Stream& stream, std::size_t first,
                            std::size_t last) {
  const std::string_view* ids = stream.ids().data();
  std::uint64_t sum = 0;
  std::size_t zero = 0;
  for (std::size_t i = first; i < last; ++i) {
    const std::uint64_t answer = lookup(i + zero, ids[i + zero]);
    zero = static_cast<std::size_t>(answer >> 63);
    sum += answer;
  }
  return sum;
}

// A subject made of one function.
template <class Lookup>
std::uint64_t ask_one_by_one(Way way, Lookup&& lookup, const Stream& stream, std::size_t first,
                             std::size_t last) {
  return way == Way::dependent ? ask_dependent(lookup, stream, first, last)
                               : ask_independent(lookup, stream, first, last);
}

// A peer: something a user might pick instead. Each lives in a file of its own that names the
// documentation it follows, and is there only if its packages were when this was built.
struct Peer {
  std::string name;
  std::function<std::unique_ptr<Subject>(const Contents&)> make;
};

// The peers that are linked in.
std::vector<Peer>& peers();

struct RegisterPeer {
  RegisterPeer(std::string name, std::function<std::unique_ptr<Subject>(const Contents&)> make) {
    peers().push_back({std::move(name), std::move(make)});
  }
};

}  // namespace fingerpost::bench
