// User and group names as the ids that files carry.
//
// Thread-safety: any thread. They read the host's account databases: never on a request path.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "shm/status.h"

namespace fingerpost {

// A name, or an id in decimal. refused: neither; the message names the text.
Result<uid_t> user_id(std::string_view text);
Result<gid_t> group_id(std::string_view text);

// "nobody (uid 65534)", or "uid 4711" where the host knows no name.
std::string user_text(uid_t user);

}  // namespace fingerpost
