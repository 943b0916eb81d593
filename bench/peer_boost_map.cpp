// An unordered map in shared memory under a shared mutex: the obvious way with the packages we use
// ourselves. Set up as https://www.boost.org/doc/libs/1_74_0/doc/html/interprocess/
// allocators_containers.html ("Boost unordered containers") and synchronization_mechanisms.html
// ("Sharable and Upgradable Mutexes") show; one sharable lock per lookup; looked up by the
// caller's bytes, without making a shared string.
#include <unistd.h>

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/containers/string.hpp>
#include <boost/interprocess/managed_shared_memory.hpp>
#include <boost/interprocess/sync/interprocess_sharable_mutex.hpp>
#include <boost/interprocess/sync/sharable_lock.hpp>
#include <boost/unordered_map.hpp>

#include "bench/subject.h"
#include "shm/hash.h"

namespace fingerpost::bench {
namespace {

namespace bip = boost::interprocess;
using Manager = bip::managed_shared_memory::segment_manager;
using SharedString = bip::basic_string<char, std::char_traits<char>, bip::allocator<char, Manager>>;

std::string_view view(const SharedString& text) {
  return {text.data(), text.size()};
}
std::string_view view(std::string_view text) {
  return text;
}

struct Hash {
  template <class Text>
  std::size_t operator()(const Text& text) const {
    return placement_hash(view(text));
  }
};
struct Equal {
  template <class Left, class Right>
  bool operator()(const Left& left, const Right& right) const {
    return view(left) == view(right);
  }
};
using Map =
    boost::unordered_map<SharedString, std::uint64_t, Hash, Equal,
                         bip::allocator<std::pair<const SharedString, std::uint64_t>, Manager>>;

class BoostMap final : public Subject {
 public:
  explicit BoostMap(const Contents& contents)
      : remove_{"fingerpost-bench-map-" + std::to_string(::getpid())},
        memory_(bip::create_only, remove_.name.c_str(),
                (std::size_t{4} << 20) + contents.entries * 224) {
    mutex_ = memory_.construct<bip::interprocess_sharable_mutex>(bip::anonymous_instance)();
    map_ = memory_.construct<Map>(bip::anonymous_instance)(
        contents.entries, Hash(), Equal(), memory_.get_allocator<Map::value_type>());
    const auto allocator = memory_.get_allocator<char>();
    for (std::uint64_t number = 0; number < contents.entries; ++number) {
      const std::string id = make_key(contents.shape, number);
      map_->emplace(SharedString(id.data(), id.size(), allocator), answer_of(number));
    }
  }

  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t) override {
    return ask_one_by_one(
        way,
        [this](std::size_t, std::string_view id) -> std::uint64_t {
          const bip::sharable_lock<bip::interprocess_sharable_mutex> lock(*mutex_);
          const auto found = map_->find(id, Hash(), Equal());
          return found == map_->end() ? 0 : found->second;
        },
        stream, first, last);
  }

 private:
  struct Removal {
    std::string name;
    ~Removal() { bip::shared_memory_object::remove(name.c_str()); }
  };
  Removal remove_;
  bip::managed_shared_memory memory_;
  bip::interprocess_sharable_mutex* mutex_ = nullptr;
  Map* map_ = nullptr;
};

const RegisterPeer kRegistered("boost_map", [](const Contents& contents) {
  return std::make_unique<BoostMap>(contents);
});

}  // namespace
}  // namespace fingerpost::bench
