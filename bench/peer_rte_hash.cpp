// DPDK rte_hash in its lock-free reader/writer mode, as
// https://doc.dpdk.org/guides-22.11/prog_guide/hash_lib.html recommends it for multi-threaded use
// (RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF); its bulk lookup, of at most 64 keys, as "batch". The
// hash function is its default for this processor. DPDK counts on huge pages: its memory is put on
// them where the kernel lets us.
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_memory.h>

#include <array>
#include <cstring>

#include "bench/machine.h"
#include "bench/subject.h"

namespace fingerpost::bench {
namespace {

// Once per process. EAL pins its caller to the processor it is told.
void start_eal(int cpu) {
  static bool started = false;
  if (started) return;
  std::array<std::string, 11> words = {"bench",
                                       "--no-huge",
                                       "--no-pci",
                                       "--no-shconf",
                                       "--no-telemetry",
                                       "--log-level=4",
                                       "-m",
                                       "768",
                                       "-l",
                                       std::to_string(cpu),
                                       "--file-prefix=fingerpost-bench"};
  std::array<char*, words.size()> argv;
  for (std::size_t i = 0; i < words.size(); ++i) argv[i] = words[i].data();
  if (rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
    throw std::runtime_error("DPDK does not start: " + std::string(rte_strerror(rte_errno)));
  }
  started = true;
}

class RteHash final : public Subject {
 public:
  explicit RteHash(const Contents& contents) {
    start_eal(measured_cpu());
    static unsigned made = 0;
    const std::string name = "bench" + std::to_string(made++);
    key_bytes_ = make_key(contents.shape, 0).size();
    rte_hash_parameters parameters{};
    parameters.name = name.c_str();
    parameters.entries = static_cast<std::uint32_t>(contents.entries + contents.entries / 4 + 64);
    parameters.key_len = static_cast<std::uint32_t>(key_bytes_);
    parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF | RTE_HASH_EXTRA_FLAGS_EXT_TABLE;
    table_ = rte_hash_create(&parameters);
    if (table_ == nullptr)
      throw std::runtime_error("no rte_hash: " + std::string(rte_strerror(rte_errno)));
    for (std::uint64_t number = 0; number < contents.entries; ++number) {
      const std::string key = make_key(contents.shape, number);
      if (key.size() != key_bytes_) throw std::runtime_error("rte_hash takes keys of one length");
      if (rte_hash_add_key_data(table_, key.data(), reinterpret_cast<void*>(answer_of(number))) < 0)
        throw std::runtime_error("rte_hash is full");
    }
    rte_memseg_walk(
        [](const rte_memseg_list* list, const rte_memseg*, void*) {
          collapse(list->base_va, list->len);
          return 1;  // one list holds all of it without huge pages of its own
        },
        nullptr);
  }
  ~RteHash() override { rte_hash_free(table_); }

  bool can(Way) const override { return true; }
  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t size) override {
    if (way == Way::batch) return ask_in_bulk(stream, first, last, size);
    return ask_one_by_one(
        way,
        [this](std::size_t, std::string_view id) -> std::uint64_t {
          void* data = nullptr;
          return rte_hash_lookup_data(table_, id.data(), &data) < 0
                     ? 0
                     : reinterpret_cast<std::uint64_t>(data);
        },
        stream, first, last);
  }

 private:
  std::uint64_t ask_in_bulk(const Stream& stream, std::size_t first, std::size_t last,
                            std::size_t size) {
    std::array<const void*, RTE_HASH_LOOKUP_BULK_MAX> keys;
    std::array<void*, RTE_HASH_LOOKUP_BULK_MAX> data;
    std::uint64_t sum = 0;
    for (std::size_t at = first; at < last; at += size) {
      const std::size_t count = std::min({size, last - at, keys.size()});
      for (std::size_t i = 0; i < count; ++i) keys[i] = stream.ids()[at + i].data();
      std::uint64_t hits = 0;
      rte_hash_lookup_bulk_data(table_, keys.data(), static_cast<std::uint32_t>(count), &hits,
                                data.data());
      for (std::size_t i = 0; i < count; ++i) {
        if ((hits >> i & 1) != 0) sum += reinterpret_cast<std::uint64_t>(data[i]);
      }
    }
    return sum;
  }

  rte_hash* table_ = nullptr;
  std::size_t key_bytes_ = 0;
};

const RegisterPeer kRegistered("rte_hash", [](const Contents& contents) {
  return std::make_unique<RteHash>(contents);
});

}  // namespace
}  // namespace fingerpost::bench
