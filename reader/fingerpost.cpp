#include "reader/fingerpost.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "reader/reader.h"
#include "shm/status.h"

struct fingerpost_reader {
  fingerpost::Reader reader;
};

namespace fingerpost {
namespace {

constexpr std::size_t kChunk = 64;  // routes of a batch on the stack

// A route in C is a Route, and says in one of its spare bytes whether it is writable.
static_assert(sizeof(fingerpost_route) == sizeof(Route));
static_assert(std::is_trivially_copyable_v<Route> && std::is_standard_layout_v<Route>);
static_assert(FINGERPOST_UNDETERMINED == static_cast<int>(Answer::undetermined));
static_assert(FINGERPOST_SOURCE_HASH == static_cast<int>(RouteSource::hash));
static_assert(FINGERPOST_STATE_SPLIT == static_cast<int>(State::split));

void store(const Route& route, fingerpost_route& out) noexcept {
  std::memcpy(&out, &route, sizeof out);
  out.writable = route.writable() ? 1 : 0;
  std::memset(out.zeros, 0, sizeof out.zeros);
}

Route load(const fingerpost_route& route) noexcept {
  return std::bit_cast<Route>(route);
}

fingerpost_text to_text(std::string_view text) noexcept {
  return {text.data(), text.size()};
}

fingerpost_status to_status(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return FINGERPOST_OK;
    case Code::absent:
      return FINGERPOST_ABSENT;
    case Code::not_permitted:
      return FINGERPOST_NOT_PERMITTED;
    case Code::wrong_owner:
      return FINGERPOST_WRONG_OWNER;
    case Code::not_ready:
      return FINGERPOST_NOT_READY;
    case Code::other_layout:
      return FINGERPOST_OTHER_LAYOUT;
    case Code::no_space:
      return FINGERPOST_NO_SPACE;
    case Code::refused:
      return FINGERPOST_REFUSED;
    case Code::corrupt:
      return FINGERPOST_CORRUPT;
    case Code::timeout:
      return FINGERPOST_TIMEOUT;
    case Code::other_history:
      return FINGERPOST_OTHER_HISTORY;
    case Code::io_error:
      return FINGERPOST_IO_ERROR;
    case Code::other_directory:
    case Code::busy:
    case Code::conflict:
    case Code::unavailable:
    case Code::internal:
      break;
  }
  return FINGERPOST_INTERNAL;
}

void tell(std::string_view text, char* message, std::size_t message_size) noexcept {
  if (message == nullptr || message_size == 0) return;
  const std::size_t size = std::min(text.size(), message_size - 1);
  std::memcpy(message, text.data(), size);
  message[size] = 0;
}

// Runs what may allocate. Nothing is thrown across the interface.
template <class Body>
std::int32_t guarded(char* message, std::size_t message_size, Body&& body) noexcept {
  try {
    const Status status = body();
    tell(status.message(), message, message_size);
    return to_status(status.code());
  } catch (const std::bad_alloc&) {
    tell("out of memory", message, message_size);
    return FINGERPOST_NO_SPACE;
  } catch (const std::exception& error) {
    tell(error.what(), message, message_size);
    return FINGERPOST_INTERNAL;
  }
}

// The caller's struct, of a size that it names: what both know, then zeros. false: it is too small
// for `kMin`, the size it had at first.
template <class Struct>
bool store_sized(const Struct& from, Struct& to) noexcept {
  constexpr std::size_t kMin = sizeof(Struct);  // of this version, the first
  const std::size_t size = to.struct_size;
  if (size < kMin) return false;
  std::memset(&to, 0, size);
  std::memcpy(&to, &from, std::min(size, sizeof from));
  to.struct_size = size;
  return true;
}

std::int32_t store_shard(const ShardView& view, fingerpost_shard* shard) noexcept {
  if (shard == nullptr || shard->struct_size < sizeof *shard) return FINGERPOST_INVALID_ARGUMENT;
  if (!view) return FINGERPOST_UNKNOWN;
  const fingerpost_shard found{sizeof found,
                               to_text(view.name()),
                               to_text(view.primary()),
                               to_text(view.region()),
                               static_cast<std::uint32_t>(view.replica_count()),
                               static_cast<std::uint32_t>(view.attribute_count())};
  store_sized(found, *shard);
  return FINGERPOST_OK;
}

// `wait(id, object)` gives the route that ended it.
template <class Wait>
std::int32_t wait_for_route(const fingerpost_reader* reader, const char* id, std::size_t id_length,
                            const char* object, std::size_t object_length, fingerpost_route* route,
                            char* message, std::size_t message_size, Wait&& wait) noexcept {
  if (reader == nullptr || id == nullptr || route == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  return guarded(message, message_size, [&]() -> Status {
    std::optional<std::string_view> of;
    if (object != nullptr) of.emplace(object, object_length);
    const Result<Route> found = wait(std::string_view(id, id_length), of);
    if (found.ok()) store(*found, *route);
    return found.status();
  });
}

}  // namespace
}  // namespace fingerpost

using namespace fingerpost;

const char* fingerpost_library_version(void) {
  return FINGERPOST_VERSION;
}

const char* fingerpost_status_text(std::int32_t status) {
  switch (status) {
    case FINGERPOST_OK:
      return "ok";
    case FINGERPOST_INVALID_ARGUMENT:
      return "invalid argument";
    case FINGERPOST_ABSENT:
      return "absent";
    case FINGERPOST_NOT_PERMITTED:
      return "not permitted";
    case FINGERPOST_WRONG_OWNER:
      return "wrong owner";
    case FINGERPOST_NOT_READY:
      return "not ready";
    case FINGERPOST_OTHER_LAYOUT:
      return "other layout";
    case FINGERPOST_NO_SPACE:
      return "no space";
    case FINGERPOST_REFUSED:
      return "refused";
    case FINGERPOST_CORRUPT:
      return "corrupt";
    case FINGERPOST_TIMEOUT:
      return "timeout";
    case FINGERPOST_OTHER_HISTORY:
      return "other history";
    case FINGERPOST_UNKNOWN:
      return "unknown";
    case FINGERPOST_IO_ERROR:
      return "input/output error";
    case FINGERPOST_INTERNAL:
      return "internal error";
    default:
      return "unknown status";
  }
}

std::int32_t fingerpost_open(const char* name, const fingerpost_options* options,
                             fingerpost_reader** reader, char* message, std::size_t message_size) {
  if (name == nullptr || reader == nullptr ||
      (options != nullptr && options->struct_size < sizeof *options)) {
    tell("a null pointer, or a struct_size that is too small", message, message_size);
    return FINGERPOST_INVALID_ARGUMENT;
  }
  return guarded(message, message_size, [&]() -> Status {
    ReaderOptions chosen;
    if (options != nullptr && options->owner != nullptr) chosen.owner = options->owner;
    auto opened = Reader::open(name, chosen);
    if (!opened.ok()) return opened.status();
    *reader = new fingerpost_reader{std::move(*opened)};
    return {};
  });
}

void fingerpost_close(fingerpost_reader* reader) {
  delete reader;
}

std::int32_t fingerpost_resolve(const fingerpost_reader* reader, const char* id,
                                std::size_t id_length, fingerpost_route* route) {
  if (reader == nullptr || id == nullptr || route == nullptr) [[unlikely]]
    return FINGERPOST_INVALID_ARGUMENT;
  store(reader->reader.resolve({id, id_length}), *route);
  return FINGERPOST_OK;
}

std::int32_t fingerpost_resolve_object(const fingerpost_reader* reader, const char* id,
                                       std::size_t id_length, const char* object,
                                       std::size_t object_length, fingerpost_route* route) {
  if (reader == nullptr || id == nullptr || object == nullptr || route == nullptr) [[unlikely]]
    return FINGERPOST_INVALID_ARGUMENT;
  store(reader->reader.resolve({id, id_length}, {object, object_length}), *route);
  return FINGERPOST_OK;
}

std::int32_t fingerpost_resolve_many(const fingerpost_reader* reader, const fingerpost_text* ids,
                                     std::size_t count, fingerpost_route* routes) {
  if (reader == nullptr || ((ids == nullptr || routes == nullptr) && count != 0))
    return FINGERPOST_INVALID_ARGUMENT;
  const auto is_null = [](const fingerpost_text& id) { return id.data == nullptr; };
  if (std::any_of(ids, ids + count, is_null)) return FINGERPOST_INVALID_ARGUMENT;
  std::array<std::string_view, kChunk> asked;
  std::array<Route, kChunk> found;
  for (std::size_t at = 0; at < count; at += kChunk) {
    const std::size_t size = std::min(kChunk, count - at);
    for (std::size_t i = 0; i < size; ++i) asked[i] = {ids[at + i].data, ids[at + i].length};
    reader->reader.resolve_many(std::span(asked).first(size), std::span(found).first(size));
    for (std::size_t i = 0; i < size; ++i) store(found[i], routes[at + i]);
  }
  return FINGERPOST_OK;
}

std::int32_t fingerpost_resolve_all(const fingerpost_reader* reader, const char* id,
                                    std::size_t id_length, fingerpost_route* routes,
                                    std::size_t capacity, std::size_t* count) {
  if (reader == nullptr || id == nullptr || count == nullptr ||
      (routes == nullptr && capacity != 0))
    return FINGERPOST_INVALID_ARGUMENT;
  std::array<Route, kPartsMax> found;
  *count = reader->reader.resolve_all({id, id_length}, found);
  const std::size_t fit = std::min({*count, capacity, found.size()});
  for (std::size_t i = 0; i < fit; ++i) store(found[i], routes[i]);
  return FINGERPOST_OK;
}

std::int32_t fingerpost_route_shard(const fingerpost_route* route, fingerpost_shard* shard) {
  if (route == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  return store_shard(load(*route).shard(), shard);
}

std::int32_t fingerpost_route_target(const fingerpost_route* route, fingerpost_shard* shard) {
  if (route == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  return store_shard(load(*route).target(), shard);
}

std::int32_t fingerpost_route_replica(const fingerpost_route* route, std::uint32_t index,
                                      fingerpost_text* address) {
  if (route == nullptr || address == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  const ShardView shard = load(*route).shard();
  if (!shard || index >= shard.replica_count()) return FINGERPOST_UNKNOWN;
  *address = to_text(shard.replica(index));
  return FINGERPOST_OK;
}

std::int32_t fingerpost_route_attribute(const fingerpost_route* route, std::uint32_t index,
                                        fingerpost_text* key, fingerpost_text* value) {
  if (route == nullptr || key == nullptr || value == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  const ShardView shard = load(*route).shard();
  if (!shard || index >= shard.attribute_count()) return FINGERPOST_UNKNOWN;
  const auto [name, text] = shard.attribute(index);
  *key = to_text(name);
  *value = to_text(text);
  return FINGERPOST_OK;
}

std::int32_t fingerpost_poll(const fingerpost_reader* reader) {
  if (reader == nullptr) return -FINGERPOST_INVALID_ARGUMENT;
  return reader->reader.poll() ? 1 : 0;
}

std::int32_t fingerpost_served_version(const fingerpost_reader* reader, std::uint64_t* version) {
  if (reader == nullptr || version == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  *version = reader->reader.version();
  return FINGERPOST_OK;
}

std::int32_t fingerpost_age(const fingerpost_reader* reader, std::int64_t* age_ns) {
  if (reader == nullptr || age_ns == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  const auto age = reader->reader.age();
  if (!age) return FINGERPOST_UNKNOWN;
  *age_ns = age->count();
  return FINGERPOST_OK;
}

std::int32_t fingerpost_judge(const fingerpost_reader* reader, fingerpost_readiness* readiness) {
  if (reader == nullptr || readiness == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  const Readiness found = reader->reader.readiness();
  const fingerpost_readiness judged{sizeof judged, found.ready ? 1 : 0, found.stale ? 1 : 0,
                                    to_text(found.reason)};
  return store_sized(judged, *readiness) ? FINGERPOST_OK : FINGERPOST_INVALID_ARGUMENT;
}

std::int32_t fingerpost_undetermined_count(const fingerpost_reader* reader, std::uint64_t* count) {
  if (reader == nullptr || count == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  *count = reader->reader.undetermined_count();
  return FINGERPOST_OK;
}

std::int32_t fingerpost_wait_version(const fingerpost_reader* reader, std::uint64_t version,
                                     std::int64_t timeout_ns, char* message,
                                     std::size_t message_size) {
  if (reader == nullptr) return FINGERPOST_INVALID_ARGUMENT;
  return guarded(message, message_size, [&] {
    return reader->reader.wait_version(version, std::chrono::nanoseconds(timeout_ns));
  });
}

std::int32_t fingerpost_wait_writable(const fingerpost_reader* reader, const char* id,
                                      std::size_t id_length, const char* object,
                                      std::size_t object_length, std::int64_t timeout_ns,
                                      fingerpost_route* route, char* message,
                                      std::size_t message_size) {
  const std::chrono::nanoseconds timeout(timeout_ns);
  return wait_for_route(reader, id, id_length, object, object_length, route, message, message_size,
                        [&](std::string_view of, const std::optional<std::string_view>& part) {
                          return part ? reader->reader.wait_writable(of, *part, timeout)
                                      : reader->reader.wait_writable(of, timeout);
                        });
}

std::int32_t fingerpost_wait_newer(const fingerpost_reader* reader, const char* id,
                                   std::size_t id_length, const char* object,
                                   std::size_t object_length, std::uint64_t epoch,
                                   std::int64_t timeout_ns, fingerpost_route* route, char* message,
                                   std::size_t message_size) {
  const std::chrono::nanoseconds timeout(timeout_ns);
  return wait_for_route(reader, id, id_length, object, object_length, route, message, message_size,
                        [&](std::string_view of, const std::optional<std::string_view>& part) {
                          return part ? reader->reader.wait_newer(of, *part, epoch, timeout)
                                      : reader->reader.wait_newer(of, epoch, timeout);
                        });
}
