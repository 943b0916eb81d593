#include "shm/cgroup_limits.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "shm/text_file.h"

namespace fingerpost {
namespace {

// Version 1 writes "no limit" as the largest page-aligned number of a signed word; whatever is
// within 2^40 of that, or above, no machine has.
constexpr std::uint64_t kNoLimit = (std::uint64_t{1} << 63) - (std::uint64_t{1} << 40);

// A file with a limit and the file with the usage it limits.
struct LimitFiles {
  unsigned version;
  const char* limit;
  const char* usage;
};
constexpr LimitFiles kLimitFiles[] = {
    {1, "memory.limit_in_bytes", "memory.usage_in_bytes"},
    {1, "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"},
    {2, "memory.max", "memory.current"},
    {2, "memory.high", "memory.current"},
};

// In a mountinfo line a space, tab, newline or backslash is a backslash and three octal digits.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const bool escape =
        text[i] == '\\' && i + 4 <= text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 3, value, 8).ptr == &text[i + 1] + 3;
    out += escape ? static_cast<char>(value) : text[i];
    if (escape) i += 3;
  }
  return out;
}

bool lists(std::string_view comma_separated, std::string_view word) {
  return std::ranges::count(fields_of(comma_separated, ','), word) > 0;
}

std::string folder_of(const CgroupMount& mount, std::string_view below) {
  return below.empty() ? mount.folder
                       : (mount.folder == "/" ? "" : mount.folder) + std::string(below);
}

// What of `group` lies below the top of the mount: "" for the top itself, else "/a/b".
std::string_view below_top(std::string_view group, std::string_view top) {
  if (top == "/") return group == "/" || group.starts_with("/..") ? std::string_view() : group;
  const bool inside =
      group.starts_with(top) && group.size() > top.size() && group[top.size()] == '/';
  return inside ? group.substr(top.size()) : std::string_view();
}

void add_with_ancestors(std::vector<CgroupFolder>& folders, std::string_view group,
                        const CgroupMount& mount) {
  std::string_view below = below_top(group, mount.group);
  for (; !below.empty(); below = below.substr(0, below.rfind('/'))) {
    folders.push_back({mount.version, folder_of(mount, below)});
  }
  folders.push_back({mount.version, mount.folder});
}

std::uint64_t available(std::uint64_t limit, std::uint64_t usage, std::uint64_t droppable) {
  const std::uint64_t fixed = usage > droppable ? usage - droppable : 0;
  return limit > fixed ? limit - fixed : 0;
}

}  // namespace

CgroupMembership parse_cgroup_membership(std::string_view proc_self_cgroup) {
  CgroupMembership membership;
  for (const std::string_view line : fields_of(proc_self_cgroup, '\n')) {
    // hierarchy:controllers:path, and the path may hold colons.
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const std::string path(line.substr(second + 1));
    if (controllers.empty() && line.substr(0, first) == "0") membership.v2 = path;
    if (lists(controllers, "memory")) membership.v1 = path;
  }
  return membership;
}

std::vector<CgroupMount> parse_cgroup_mounts(std::string_view proc_self_mountinfo) {
  std::vector<CgroupMount> mounts;
  for (const std::string_view line : fields_of(proc_self_mountinfo, '\n')) {
    // id parent major:minor root mount-point options [tags…] - type source super-options
    const std::size_t dash = line.find(" - ");
    if (dash == line.npos) continue;
    const auto left = fields_of(line.substr(0, dash), ' ');
    const auto right = fields_of(line.substr(dash + 3), ' ');
    if (left.size() < 6 || right.size() < 3) continue;
    const unsigned version = right[0] == "cgroup2"                               ? 2
                             : right[0] == "cgroup" && lists(right[2], "memory") ? 1
                                                                                 : 0;
    if (version != 0) mounts.push_back({version, unescaped(left[3]), unescaped(left[4])});
  }
  return mounts;
}

std::vector<CgroupFolder> cgroup_folders(const CgroupMembership& membership,
                                         const std::vector<CgroupMount>& mounts) {
  std::vector<CgroupFolder> folders;
  for (const CgroupMount& mount : mounts) {
    const auto& group = mount.version == 1 ? membership.v1 : membership.v2;
    if (group) add_with_ancestors(folders, *group, mount);
  }
  return folders;
}

std::vector<CgroupFolder> own_cgroup_folders(const std::string& root) {
  const auto membership = read_text_file(root + "/proc/self/cgroup");
  const auto mounts = read_text_file(root + "/proc/self/mountinfo");
  if (!membership || !mounts) return {};
  return cgroup_folders(parse_cgroup_membership(*membership), parse_cgroup_mounts(*mounts));
}

std::vector<CgroupLimit> read_cgroup_limits(const std::string& root, const CgroupFolder& group) {
  const auto text_of = [&](const char* file) {
    return read_text_file(root + group.folder + "/" + file).value_or("");
  };
  const std::string stat = text_of("memory.stat");
  // Version 1 tells a group's own figure and, as "total_", that of all groups below it as well.
  const char* key = group.version == 1 ? "total_inactive_file" : "inactive_file";
  const std::uint64_t droppable = number_after(stat, key).value_or(0);
  std::vector<CgroupLimit> limits;
  const auto add = [&](const char* name, std::optional<std::uint64_t> limit,
                       const char* usage_file) {
    // "max" is no number, and so no limit; nor has a group files whose controller is off.
    if (!limit || *limit >= kNoLimit) return;
    const auto usage = number_in(text_of(usage_file));
    if (!usage) return;
    limits.push_back(
        {std::string(name) + " of " + group.folder, *limit, available(*limit, *usage, droppable)});
  };
  for (const LimitFiles& files : kLimitFiles) {
    if (files.version == group.version)
      add(files.limit, number_in(text_of(files.limit)), files.usage);
  }
  // The least limit of all ancestors, those above the top of a container's mount included.
  if (group.version == 1) {
    constexpr const char* kLeast = "hierarchical_memory_limit";
    add(kLeast, number_after(stat, kLeast), "memory.usage_in_bytes");
  }
  return limits;
}

}  // namespace fingerpost
