// What a worker links: tenant → {shard, epoch, state}, from the one copy of the directory on this
// host.
//
//   auto reader = fingerpost::Reader::open("orders");
//   if (!reader.ok()) …;                                  // reader.status().message() says why not
//   fingerpost::Route r = reader->resolve("acme");
//   if (r.found()) connect(r.shard().primary(), r.epoch());
//
// Thread-safety: any number of threads share one Reader; it holds no lock. Safe across fork: parent
// and children go on with the same mappings. Call poll() (or age, ready, stale) about once a second
// from anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "reader/route.h"
#include "shm/directory_id.h"
#include "shm/readiness.h"
#include "shm/status.h"

namespace fingerpost {

struct ReaderOptions {
  // Whose segments to believe besides root's, one's own and the folder owner's: a user's name, a
  // uid, or "any" (private volumes, user namespaces). Empty: $FINGERPOST_OWNER.
  std::string owner;
};

// What `fingerpost status` prints; a snapshot of moving numbers.
struct SegmentStatus {
  std::string path;
  std::uint32_t layout_version = 0;
  DirectoryId directory_id{};
  std::uint64_t incarnation = 0;
  std::uint64_t version = 0;
  std::uint64_t nonce = 0;
  std::uint64_t replay_from = 0;
  std::uint64_t generation = 0;
  std::uint64_t capacity = 0;
  std::uint64_t slots = 0;
  std::uint64_t buckets = 0;         // fallback words of a bucket directory
  std::uint64_t hash_shards = 0;     // of the hash fallback
  std::uint64_t shards = 0;          // that the directory names now
  std::uint64_t table_bytes = 0;     // slots, fingerprints, fallback words, records in use
  std::uint64_t reserved_bytes = 0;  // of both halves and what is in front of them
  std::string source_kind;
  std::string_view source_state;  // "ok", "unavailable", …
  std::string last_error;         // of the source; empty: none
  std::string_view serving;       // "snapshot", "adopted", "caught up"
  // Since the syncer showed that it was alive; a living one does twice a second. nullopt: never.
  std::optional<std::chrono::nanoseconds> heartbeat_age;
  std::uint64_t counters[kCountersMax] = {};
};

class Reader {
 public:
  // Maps the segment of `name` (shm/segment_path.h says where it is looked for), or of a path.
  // Absent: no such segment · not_permitted · wrong_owner · not_ready: half made · other_layout ·
  // corrupt · no_space: cannot map · refused: not a name
  static Result<Reader> open(std::string_view name_or_path, const ReaderOptions& options = {});

  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  // Wait-free; no clock, no system call (but for the one that first meets a superseded segment,
  // which opens the successor). Any bytes are safe to ask; what is not an id is `refused`.
  Route resolve(std::string_view id) const noexcept;

  // The same for one object (a document, an account, whatever the tenant's data is split by). Of a
  // split tenant the part that the object belongs to answers; of any other the object is ignored,
  // so that callers may always pass it. Any bytes are an object.
  Route resolve(std::string_view id, std::string_view object) const noexcept;

  // Where all of a tenant's data is, at one moment: for asking everybody. Returns how many routes
  // that takes: the parts of a split tenant, in order, or 1, and then routes[0] is what resolve(id)
  // says, whatever that is. If `routes` is shorter it gets as many as fit; kPartsMax always fit.
  std::size_t resolve_all(std::string_view id, std::span<Route> routes) const noexcept;

  // What resolve(id) says for ids[i] into routes[i]; as many as the shorter of the two has. The
  // lookups overlap in memory.
  void resolve_many(std::span<const std::string_view> ids, std::span<Route> routes) const noexcept;

  // Moves over to the successor of a superseded segment, or to the one that has the name now if
  // this one's syncer is gone. At most one attempt a second. Returns whether the reader moved.
  bool poll() const noexcept;

  // Since the last successful read of the directory to its end; nullopt: unknown. Polls.
  std::optional<std::chrono::nanoseconds> age() const noexcept;
  // The directory version that is served.
  std::uint64_t version() const noexcept;
  std::uint64_t generation() const noexcept;
  // Polls.
  Readiness readiness() const noexcept;
  bool ready() const noexcept { return readiness().ready; }
  bool stale() const noexcept { return readiness().stale; }

  // Sleeps until the served version is at least `version`. timeout · other_history: the incarnation
  // changed since the call, and versions of the old history mean nothing any more.
  Status wait_version(std::uint64_t version, std::chrono::nanoseconds timeout) const;

  // Sleeps until writes may go to the tenant's shard, or to that of `object`'s part, and gives the
  // route that said so. A tenant that is unknown, deleted, or split with no object given may become
  // writable, too: only the timeout ends that. timeout: what it is instead · refused: not an id ·
  // other_history, as above. No promise that it still is when the caller hears of it.
  Result<Route> wait_writable(std::string_view id, std::chrono::nanoseconds timeout) const;
  Result<Route> wait_writable(std::string_view id, std::string_view object,
                              std::chrono::nanoseconds timeout) const;

  // Sleeps until the route's epoch is above `epoch`: for whoever was told by a shard that it knows
  // better. An unknown tenant's epoch is 0. Fails as wait_writable does.
  Result<Route> wait_newer(std::string_view id, std::uint64_t epoch,
                           std::chrono::nanoseconds timeout) const;
  Result<Route> wait_newer(std::string_view id, std::string_view object, std::uint64_t epoch,
                           std::chrono::nanoseconds timeout) const;

  // Lookups that ended undetermined, and passes beyond the first, of all threads.
  std::uint64_t undetermined_count() const noexcept;
  std::uint64_t extra_pass_count() const noexcept;

  SegmentStatus status() const;

  // Calls visit(id, route) for each override, then for each bucket (id "bucket:N") or hash word
  // ("hash:N"), of one generation. unavailable: a generation switch came in between, nothing is
  // promised of what was visited.
  Status visit_entries(const std::function<void(std::string_view, const Route&)>& visit) const;
  // The shards the directory names now.
  void visit_shards(const std::function<void(const ShardView&)>& visit) const;

 private:
  struct Impl;
  explicit Reader(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fingerpost
