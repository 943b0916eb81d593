// `fingerpost tenant …`: single entries. Nothing here changes the shard of an entry that exists:
// that is a move.
//
// Throws SqliteError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "shm/status.h"
#include "tools/directory.h"
#include "tools/directory_entry.h"

namespace fingerpost {

// nullopt inside: the id has no entry of its own.
Result<std::optional<TenantRow>> get_tenant(Directory& directory, std::string_view id);

// Where a new tenant is to be. With neither, the placement chooses among all shards, and where
// buckets or the hash rule answer for the tenant already, it gets no entry: that is where it is.
struct CreateWish {
  std::string shard;   // this one; excludes `region`
  std::string region;  // the placement chooses among the shards of it
  bool dry_run = false;
};

struct Created {
  std::string shard;
  std::string answered_by;  // "bucket:N" or "the hash rule" where no entry was needed; else empty
  bool written = false;     // of a dry run: would be
  std::uint64_t version = 0;
};

// Puts a new tenant, or one that was DELETED, where the wish and its pin allow, chosen in the
// transaction that writes the entry. Done already where it is ACTIVE there; a conflict where it is
// elsewhere, and while it, or the bucket that answered for it, is being moved; refused where no
// shard takes it. Absent where a bucket without a shard is all that answers.
Result<Created> create_tenant(Directory& directory, std::string_view id, const CreateWish& wish);

// On `shard`. The version.
Result<std::uint64_t> create_tenant(Directory& directory, std::string_view id,
                                    std::string_view shard);

struct Deleted {
  // "bucket:N" or "the hash rule" where the tenant had no entry, and which shard it named; else
  // empty.
  std::string answered_by;
  std::string shard;
  std::uint64_t version = 0;

  bool operator==(const Deleted&) const = default;
};

// Says that the tenant is gone. One that only its bucket or the hash rule answered for gets an
// entry that says so, on the shard that it resolved to. Absent where nothing answers for it;
// refused while it is being moved.
Result<Deleted> delete_tenant(Directory& directory, std::string_view id);

struct TenantPage {
  std::string prefix;
  std::string after;        // ids greater than this one, byte by byte
  std::uint64_t limit = 0;  // 0: no limit
};

// Entries of tenants in the order of their ids' bytes, read at one version. `take` must not use the
// directory.
void list_tenants(Directory& directory, const TenantPage& page,
                  const std::function<void(const TenantRow&)>& take);

}  // namespace fingerpost
