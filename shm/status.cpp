#include "shm/status.h"

#include <cerrno>
#include <system_error>

namespace fingerpost {

std::string_view to_string(Code code) noexcept {
  switch (code) {
    case Code::ok:
      return "ok";
    case Code::absent:
      return "absent";
    case Code::not_permitted:
      return "not permitted";
    case Code::wrong_owner:
      return "wrong owner";
    case Code::not_ready:
      return "not ready";
    case Code::other_layout:
      return "other layout";
    case Code::other_directory:
      return "other directory";
    case Code::other_history:
      return "other history";
    case Code::busy:
      return "busy";
    case Code::no_space:
      return "no space";
    case Code::refused:
      return "refused";
    case Code::conflict:
      return "conflict";
    case Code::unavailable:
      return "unavailable";
    case Code::timeout:
      return "timeout";
    case Code::corrupt:
      return "corrupt";
    case Code::io_error:
      return "i/o error";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

Status Status::from_errno(int error, std::string_view what) {
  Code code = Code::io_error;
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      code = Code::not_permitted;
      break;
    case ENOENT:
    case ENOTDIR:
      code = Code::absent;
      break;
    case ENOSPC:
    case ENOMEM:
    case EDQUOT:
      code = Code::no_space;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + std::generic_category().message(error)};
}

}  // namespace fingerpost
