// What the demo does to its directory while the workers resolve: shards fail over, tenants and
// buckets move step by step, some moves are given up. Each step is in the ledger before its COMMIT.
//
// One thread, and the only writer of the directory: it foretells the version of a step. Throws
// SqliteError, std::runtime_error.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tools/demo_ledger.h"
#include "tools/directory.h"

namespace fingerpost::demo {

class Changes {
 public:
  // The three are to outlive it. Writes down what the directory holds at first.
  Changes(Directory& directory, const std::vector<std::string>& ids, Ledger& ledger);

  // The version that it made; nullopt where an entry's page of the ledger was full.
  std::optional<std::uint64_t> commit_one();
  // Ends the moves that are open.
  void finish();

  std::uint64_t commits() const { return commits_; }
  std::uint64_t moved() const { return moved_; }

 private:
  struct OpenMove {
    std::string id;  // a tenant's, or bucket:N
    Entry* entry;
    std::uint64_t source;
    std::uint64_t target;
  };

  void write_down_entries();
  std::optional<std::uint64_t> begin_move();
  std::uint64_t advance(OpenMove move);
  std::optional<std::uint64_t> fail_over();
  template <class Step>
  std::uint64_t commit_step(Entry& entry, std::uint64_t value, const Step& step);

  Directory& directory_;
  const std::vector<std::string>& ids_;
  Ledger& ledger_;
  std::deque<OpenMove> open_;  // the oldest first
  std::mt19937_64 random_{1};
  std::uint64_t commits_ = 0;
  std::uint64_t moved_ = 0;
};

}  // namespace fingerpost::demo
