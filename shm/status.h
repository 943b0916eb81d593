// What went wrong, and the values that mattered. The world's faults travel as a Status; caller bugs
// are assertions; bytes that make no sense are a Status as well, never an abort.
//
// Thread-safety: values; as safe as the std::string inside.
#pragma once

#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fingerpost {

enum class Code : unsigned char {
  ok,
  absent,           // the named thing does not exist
  not_permitted,    // the kernel refused access
  wrong_owner,      // it exists, but belongs to somebody we must not trust
  not_ready,        // it exists, but is not complete yet
  other_layout,     // written by an incompatible build
  other_directory,  // identity differs from the one expected
  other_history,    // same directory, another incarnation
  busy,             // somebody else holds it
  no_space,         // memory, disk, slots, records or topology space
  refused,          // the input is not acceptable
  conflict,         // acceptable input that contradicts what is stored
  unavailable,      // a source or service does not answer
  timeout,
  corrupt,  // bytes that make no sense
  io_error,
  internal,
};

// The code's name as it appears in messages and JSON, for example "not permitted". Static lifetime.
std::string_view to_string(Code code) noexcept;

class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {
    assert(code != Code::ok);
  }

  // A failed system call: `what` names the call's purpose and the path; errno decides the code
  // (EACCES, EPERM: not_permitted; ENOENT: absent; ENOSPC, ENOMEM: no_space; else io_error).
  static Status from_errno(int error, std::string_view what);

  bool ok() const noexcept { return code_ == Code::ok; }
  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }

 private:
  Code code_ = Code::ok;
  std::string message_;
};

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }
  Result(T value) : value_(std::move(value)) {}

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Status& status() const noexcept { return status_; }

  T& operator*() & noexcept { return *value_; }
  const T& operator*() const& noexcept { return *value_; }
  T&& operator*() && noexcept { return *std::move(value_); }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace fingerpost
