// absl::flat_hash_map<std::string, …>, private to the process: what most routers do today. Looked
// up by string_view, without a copy of the id, as https://abseil.io/docs/cpp/guides/container
// ("Heterogeneous Lookup") recommends; reserved to its size before it is filled.
#include <absl/container/flat_hash_map.h>

#include "bench/subject.h"

namespace fingerpost::bench {
namespace {

class AbslMap final : public Subject {
 public:
  explicit AbslMap(const Contents& contents) {
    map_.reserve(contents.entries);
    for (std::uint64_t number = 0; number < contents.entries; ++number) {
      map_.emplace(make_key(contents.shape, number), answer_of(number));
    }
  }

  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t) override {
    return ask_one_by_one(
        way,
        [this](std::size_t, std::string_view id) -> std::uint64_t {
          const auto found = map_.find(absl::string_view(id.data(), id.size()));
          return found == map_.end() ? 0 : found->second;
        },
        stream, first, last);
  }

 private:
  absl::flat_hash_map<std::string, std::uint64_t> map_;
};

const RegisterPeer kRegistered("absl", [](const Contents& contents) {
  return std::make_unique<AbslMap>(contents);
});

}  // namespace
}  // namespace fingerpost::bench
