// A shard of the topology as values: what the directory says, what a snapshot carries, what the
// segment interns.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fingerpost {

inline constexpr std::size_t kShardNameBytesMax = 32;
inline constexpr std::size_t kShardFieldBytesMax =
    1'024;                                        // one address, region, attribute name or value
inline constexpr std::size_t kShardListMax = 64;  // replicas; attributes

struct ShardSpec {
  std::string name;
  std::string primary;  // "host:port" or any address the workers understand; may be empty
  std::vector<std::string> replicas;  // in the directory's order
  std::string region;
  std::uint32_t weight = 100;  // share of new tenants relative to the others; 0 takes none
  std::vector<std::pair<std::string, std::string>> attributes;  // sorted by name

  bool operator==(const ShardSpec&) const = default;
};

}  // namespace fingerpost
