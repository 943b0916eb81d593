#include "syncer/snapshot_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

namespace fingerpost {
namespace {

constexpr mode_t kFolderMode = 0750;
constexpr std::string_view kSuffix = ".fps";

Status make_folder(const std::string& directory) {
  if (::mkdir(directory.c_str(), kFolderMode) == 0) return {};
  if (errno != EEXIST) {
    return Status::from_errno(errno, "making the snapshot folder " + directory);
  }
  struct stat found {};
  if (::stat(directory.c_str(), &found) != 0) {
    return Status::from_errno(errno, "looking at the snapshot folder " + directory);
  }
  if (S_ISDIR(found.st_mode)) return {};
  return {Code::refused, directory + " is no folder for snapshots, but a file"};
}

// Takes "-<decimal>" off the end of `text`.
bool drop_number(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return false;
  const std::string_view digits = text.substr(dash + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return false;
  text = text.substr(0, dash);
  return true;
}

// Whether a file of this name is one of the snapshots of `name`. "a-1-2-3.fps" belongs to "a-1",
// not to "a".
bool is_snapshot_of(std::string_view file, std::string_view name) {
  if (!file.ends_with(kSuffix)) return false;
  file.remove_suffix(kSuffix.size());
  return drop_number(file) && drop_number(file) && file == name;
}

auto age_key(const SnapshotInfo& info) {
  return std::tuple(info.header.incarnation, info.header.cursor.version,
                    info.header.last_sync_unix_ns);
}

}  // namespace

Result<SnapshotListing> list_snapshots(const std::string& directory, const std::string& name) {
  SnapshotListing listing;
  std::error_code error;
  std::filesystem::directory_iterator at(directory, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (!is_snapshot_of(at->path().filename().native(), name)) continue;
    Result<SnapshotInfo> info = inspect_snapshot(at->path().native());
    if (info) {
      listing.good.push_back(*std::move(info));
    } else {
      listing.faults.push_back({at->path().native(), info.status()});
    }
  }
  if (error) return Status::from_errno(error.value(), "reading the snapshot folder " + directory);
  std::sort(listing.good.begin(), listing.good.end(),
            [](const auto& a, const auto& b) { return age_key(a) > age_key(b); });
  return listing;
}

Result<std::unique_ptr<SnapshotStore>> SnapshotStore::open(std::string directory, std::string name,
                                                           IoOptions io) {
  if (Status status = make_folder(directory); !status.ok()) return status;
  const std::string leftover = directory + "/" + snapshot_temporary_name(name);
  if (::unlink(leftover.c_str()) != 0 && errno != ENOENT) {
    return Status::from_errno(errno, "removing the half-written snapshot " + leftover);
  }
  return std::unique_ptr<SnapshotStore>(
      new SnapshotStore(std::move(directory), std::move(name), io));
}

Result<SnapshotListing> SnapshotStore::candidates(const DirectoryId& id) const {
  Result<SnapshotListing> listing = list_snapshots(directory_, name_);
  if (!listing) return listing;
  const auto foreign =
      std::stable_partition(listing->good.begin(), listing->good.end(),
                            [&](const auto& info) { return info.header.directory_id == id; });
  for (auto info = foreign; info != listing->good.end(); ++info) {
    listing->faults.push_back(
        {info->path, Status{Code::other_directory,
                            fmt::format("snapshot {} is of directory {}, expected {}", info->path,
                                        to_string(info->header.directory_id), to_string(id))}});
  }
  listing->good.erase(foreign, listing->good.end());
  return listing;
}

Result<std::unique_ptr<SnapshotReader>> SnapshotStore::read(const std::string& path) const {
  return SnapshotReader::open(path, io_);
}

Result<std::unique_ptr<SnapshotWriter>> SnapshotStore::write(const DirectoryId& id,
                                                             std::uint64_t incarnation) {
  if (Status status = make_folder(directory_); !status.ok()) return status;
  return SnapshotWriter::create(directory_, name_, id, incarnation,
                                std::make_unique<SnapshotIo>(io_));
}

bool SnapshotStore::is_gone() const {
  return ::access(directory_.c_str(), F_OK) != 0 && errno == ENOENT;
}

Result<SnapshotStore::Known> SnapshotStore::stamp_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return Status::from_errno(errno, "looking at the snapshot " + path);
  }
  return Known{path, found.st_ino, static_cast<std::uint64_t>(found.st_size),
               found.st_mtim.tv_sec * std::int64_t{1'000'000'000} + found.st_mtim.tv_nsec, false};
}

Status SnapshotStore::begin_retention(const DirectoryId& id) {
  const Result<SnapshotListing> listing = candidates(id);
  if (!listing) return listing.status();
  in_order_.clear();
  unverified_.clear();
  std::vector<Known> still_there;
  for (const SnapshotInfo& info : listing->good) {
    Result<Known> stamp = stamp_of(info.path);
    if (!stamp) return stamp.status();
    in_order_.push_back(info.path);
    const auto known = std::find_if(known_.begin(), known_.end(),
                                    [&](const Known& k) { return k.same_file(*stamp); });
    if (known != known_.end()) {
      still_there.push_back(*known);
    } else {
      unverified_.push_back(info.path);
    }
  }
  known_ = std::move(still_there);
  if (in_order_.size() <= kSnapshotsKept)
    unverified_.clear();  // nothing is removed: nothing to prove
  retaining_ = true;
  return {};
}

// Reads one block of the file at the end of unverified_, or opens it.
Status SnapshotStore::verify_step() {
  if (verifying_ == nullptr) {
    Result<Known> stamp = stamp_of(unverified_.back());
    if (!stamp) return stamp.status();
    verifying_stamp_ = *std::move(stamp);
    Result<std::unique_ptr<SnapshotReader>> reader = read(unverified_.back());
    if (!reader) return reader.status();
    verifying_ = *std::move(reader);
    return {};
  }
  BlockView block;
  const Result<bool> more = verifying_->next_block(block);
  if (!more) return more.status();
  if (*more) return {};
  if (Status status = verifying_->finish(); !status.ok()) return status;
  verifying_stamp_.good = true;
  known_.push_back(verifying_stamp_);
  verifying_.reset();
  unverified_.pop_back();
  return {};
}

Result<bool> SnapshotStore::retain_step(const DirectoryId& id) {
  if (!retaining_) {
    if (Status status = begin_retention(id); !status.ok()) return status;
    return true;
  }
  if (!unverified_.empty()) {
    // What is damaged is left where it is, and counts neither as kept nor as superfluous.
    if (!verify_step().ok()) {
      if (verifying_ != nullptr) known_.push_back(verifying_stamp_);
      verifying_.reset();
      unverified_.pop_back();
    }
    return true;
  }
  retaining_ = false;
  std::size_t kept = 0;
  for (const std::string& path : in_order_) {
    const bool good = std::any_of(known_.begin(), known_.end(),
                                  [&](const Known& k) { return k.good && k.path == path; });
    if (!good || ++kept <= kSnapshotsKept) continue;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return Status::from_errno(errno, "removing the old snapshot " + path);
    }
  }
  return false;
}

Status SnapshotStore::retain(const DirectoryId& id) {
  for (;;) {
    const Result<bool> more = retain_step(id);
    if (!more) return more.status();
    if (!*more) return {};
  }
}

}  // namespace fingerpost
