// LMDB on tmpfs. As http://www.lmdb.tech/doc/starting.html and /group__mdb.html say of read-mostly
// use: one read transaction kept open over the lookups, MDB_NORDAHEAD for random access, filled in
// key order with MDB_APPEND; MDB_NOSYNC, since tmpfs has nothing to sync.
#include <lmdb.h>

#include <algorithm>
#include <cstring>

#include "bench/scratch_folder.h"
#include "bench/subject.h"

namespace fingerpost::bench {
namespace {

void check_mdb(int code) {
  if (code != MDB_SUCCESS) throw std::runtime_error(std::string("LMDB: ") + mdb_strerror(code));
}

MDB_val value_of(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};
}

class Lmdb final : public Subject {
 public:
  explicit Lmdb(const Contents& contents) {
    check_mdb(mdb_env_create(&env_));
    check_mdb(mdb_env_set_mapsize(env_, (std::size_t{16} << 20) + contents.entries * 256));
    check_mdb(mdb_env_open(env_, folder_.path().c_str(), MDB_NOSYNC | MDB_NORDAHEAD, 0600));
    std::vector<std::pair<std::string, std::uint64_t>> sorted;
    for (std::uint64_t number = 0; number < contents.entries; ++number) {
      sorted.emplace_back(make_key(contents.shape, number), answer_of(number));
    }
    std::sort(sorted.begin(), sorted.end());
    MDB_txn* fill = nullptr;
    check_mdb(mdb_txn_begin(env_, nullptr, 0, &fill));
    check_mdb(mdb_dbi_open(fill, nullptr, 0, &database_));
    for (const auto& [id, answer] : sorted) {
      MDB_val key = value_of(id);
      MDB_val data{sizeof answer, const_cast<std::uint64_t*>(&answer)};
      check_mdb(mdb_put(fill, database_, &key, &data, MDB_APPEND));
    }
    check_mdb(mdb_txn_commit(fill));
    check_mdb(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &read_));
  }
  ~Lmdb() override {
    if (read_ != nullptr) mdb_txn_abort(read_);
    mdb_env_close(env_);
  }

  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t) override {
    return ask_one_by_one(
        way,
        [this](std::size_t, std::string_view id) -> std::uint64_t {
          MDB_val key = value_of(id);
          MDB_val data;
          if (mdb_get(read_, database_, &key, &data) != MDB_SUCCESS) return 0;
          std::uint64_t answer;
          std::memcpy(&answer, data.mv_data, sizeof answer);
          return answer;
        },
        stream, first, last);
  }

 private:
  ScratchFolder folder_{kTmpfs};
  MDB_env* env_ = nullptr;
  MDB_dbi database_ = 0;
  MDB_txn* read_ = nullptr;
};

const RegisterPeer kRegistered("lmdb", [](const Contents& contents) {
  return std::make_unique<Lmdb>(contents);
});

}  // namespace
}  // namespace fingerpost::bench
