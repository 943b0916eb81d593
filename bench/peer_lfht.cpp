// liburcu's lock-free hash table, as the example in https://liburcu.org (doc/examples/
// rculfhash/cds_lfht_lookup.c) sets it up: caller-chosen hash and nodes with the key inside. The
// QSBR flavour, whose readers are the fastest; a quiescent state every 1,024 lookups. Sized before
// it is filled and hashed by the same XXH3 as ours.
#define _LGPL_SOURCE
#include <urcu/rculfhash.h>
#include <urcu/urcu-qsbr.h>

#include <bit>
#include <cstring>
#include <memory>

#include "bench/subject.h"
#include "shm/hash.h"

namespace fingerpost::bench {
namespace {

struct Node {
  cds_lfht_node node;
  std::uint64_t answer = 0;
  std::uint8_t length = 0;
  char id[47];
};

int same_id(cds_lfht_node* node, const void* key) {
  const Node* entry = caa_container_of(node, Node, node);
  const auto& id = *static_cast<const std::string_view*>(key);
  return entry->length == id.size() && std::memcmp(entry->id, id.data(), id.size()) == 0;
}

class Lfht final : public Subject {
 public:
  explicit Lfht(const Contents& contents)
      : nodes_(std::make_unique<Node[]>(contents.entries)), entries_(contents.entries) {
    urcu_qsbr_register_thread();
    const unsigned long size = std::bit_ceil(contents.entries);
    table_ = cds_lfht_new_flavor(size, size, 0, 0, &urcu_qsbr_flavor, nullptr);
    for (std::uint64_t number = 0; number < entries_; ++number) {
      const std::string id = make_key(contents.shape, number);
      if (id.size() > sizeof Node::id) throw std::runtime_error("too long an id for a node");
      Node& entry = nodes_[number];
      cds_lfht_node_init(&entry.node);
      entry.answer = answer_of(number);
      entry.length = static_cast<std::uint8_t>(id.size());
      std::memcpy(entry.id, id.data(), id.size());
      urcu_qsbr_read_lock();
      cds_lfht_add(table_, placement_hash(id), &entry.node);
      urcu_qsbr_read_unlock();
    }
  }
  ~Lfht() override {
    urcu_qsbr_read_lock();
    for (std::uint64_t number = 0; number < entries_; ++number)
      cds_lfht_del(table_, &nodes_[number].node);
    urcu_qsbr_read_unlock();
    urcu_qsbr_quiescent_state();
    urcu_qsbr_unregister_thread();
    cds_lfht_destroy(table_, nullptr);
  }

  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t) override {
    return ask_one_by_one(
        way,
        [this](std::size_t i, std::string_view id) -> std::uint64_t {
          urcu_qsbr_read_lock();
          cds_lfht_iter iter;
          cds_lfht_lookup(table_, placement_hash(id), same_id, &id, &iter);
          const cds_lfht_node* node = cds_lfht_iter_get_node(&iter);
          const std::uint64_t answer =
              node == nullptr ? 0 : caa_container_of(node, const Node, node)->answer;
          urcu_qsbr_read_unlock();
          if (i % 1'024 == 0) urcu_qsbr_quiescent_state();
          return answer;
        },
        stream, first, last);
  }

 private:
  std::unique_ptr<Node[]> nodes_;
  std::uint64_t entries_;
  cds_lfht* table_ = nullptr;
};

const RegisterPeer kRegistered("lfht", [](const Contents& contents) {
  return std::make_unique<Lfht>(contents);
});

}  // namespace
}  // namespace fingerpost::bench
