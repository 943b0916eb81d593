#include "shm/slot.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>

using namespace fingerpost;

namespace {

using Id = PackedId<StdAtomics>;

constexpr std::uint64_t kSequenceMax = (std::uint64_t{1} << 48) - 1;

struct Place {
  Slot<StdAtomics> slot{};
  std::array<StdAtomics::Word, 64> words{};

  RecordsView<StdAtomics> records() const { return {words.data(), words.size()}; }
  void rewrite(const std::string& id, std::uint64_t route, bool unused = false) {
    rewrite_slot(slot, Id(id), 0, route, unused, [] {});
  }
  std::uint64_t read(const std::string& id) const { return read_slot(slot, Id(id), records()); }
  std::uint64_t sequence() const { return slot_sequence(slot.header.load()); }
};

}  // namespace

TEST_CASE("a slot answers for its own id and for no other") {
  Place place;
  CHECK(place.read("acme") == 0);
  place.rewrite("acme", 7, true);
  CHECK(place.read("acme") == 7);
  for (const char* other : {"acm", "acme2", "bcme", "a"}) CHECK(place.read(other) == 0);
  place.rewrite("other", 8);
  CHECK(place.read("acme") == 0);
  CHECK(place.read("other") == 8);
}

TEST_CASE("a slot answers for nobody while it is rewritten, its new id included") {
  Place place;
  place.rewrite("acme", 7, true);
  bool shown = false;
  rewrite_slot(place.slot, Id("other"), 0, 8, false, [&] {
    shown = true;  // the moment at which its fingerprint goes in
    CHECK(is_odd(place.sequence()));
    CHECK(place.read("acme") == 0);
    CHECK(place.read("other") == 0);
  });
  CHECK(shown);
  CHECK(place.read("other") == 8);
}

TEST_CASE("the sequence grows by two with each rewrite, from one for a slot never used") {
  Place place;
  place.slot.header.store(~std::uint64_t{0});  // whatever an earlier generation left
  place.rewrite("acme", 7, true);
  CHECK(place.sequence() == 2);
  place.rewrite("other", 8);
  CHECK(place.sequence() == 4);
  place.slot.header.store(encode_slot_header(5, 0));  // a writer died here
  place.rewrite("third", 9);
  CHECK(place.sequence() == 8);
  CHECK(place.read("third") == 9);
}

TEST_CASE(
    "at the end of its 48 bits the sequence begins again, odd stays odd, and no other field is "
    "touched") {
  Place place;
  place.rewrite("acme", 7, true);
  place.slot.header.store(encode_slot_header(kSequenceMax - 1, 4));
  CHECK(place.read("acme") == 7);
  rewrite_slot(place.slot, Id("other"), 0, 8, false,
               [&] { CHECK(place.sequence() == kSequenceMax); });
  CHECK(place.sequence() == 0);
  CHECK(slot_id_length(place.slot.header.load()) == 5);
  CHECK(place.read("other") == 8);
  CHECK(place.read("acme") == 0);
}

TEST_CASE("a freed slot is rewritten whole, and shows neither of the ids it was between") {
  Place place;
  place.rewrite("acme", 7, true);
  place.slot.header.store(encode_slot_header(3, 0));
  place.slot.id[0].store(0x6F);
  free_slot(place.slot);
  CHECK_FALSE(is_odd(place.sequence()));
  CHECK(place.sequence() > 3);
  CHECK(place.read("acme") == 0);
  CHECK(place.read("o") == 0);
  for (const auto& word : place.slot.id) CHECK(word.load() == 0);
  CHECK(place.slot.route.load() == 0);
}

TEST_CASE("a word of records outside their area reads as nothing") {
  const Place place;
  const RecordsView<StdAtomics> records = place.records();
  for (const std::uint64_t at : {std::uint64_t{64}, std::uint64_t{65}, ~std::uint64_t{0}})
    CHECK(records.load(at) == 0);
}
