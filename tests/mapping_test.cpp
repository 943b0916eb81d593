#include "shm/mapping.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstring>
#include <type_traits>

#include "shm/unique_fd.h"
#include "tests/child_process.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSpan = std::uint64_t{3} << 30;

// A sanitizer's own mappings exceed any limit of the address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

struct File {
  TempFolder folder{"/dev/shm"};
  std::string path = folder.file("s");
  UniqueFd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  File() { REQUIRE(::fallocate(fd.get(), 0, 0, kPage) == 0); }
  std::int64_t blocks() const {
    struct stat info {};
    REQUIRE(::fstat(fd.get(), &info) == 0);
    return info.st_blocks;
  }
};

TEST_CASE("what the writer stores, a reader sees in a span far beyond the file's end") {
  const File file;
  auto writer = WriteMapping::map(file.fd.get(), kPage, file.path);
  REQUIRE(writer.ok());
  UniqueFd read_only(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  auto reader = ReadMapping::map(read_only.get(), kSpan, file.path);
  REQUIRE_MESSAGE(reader.ok(), reader.status().message());
  read_only.reset();
  CHECK(reader->size() == kSpan);
  std::memcpy(writer->data(), "hello", 5);
  CHECK(std::memcmp(reader->data(), "hello", 5) == 0);
  CHECK(file.blocks() == kPage / 512);
}

TEST_CASE("a reader's mapping cannot be written, not even through a descriptor that could") {
  const File file;
  auto reader = ReadMapping::map(file.fd.get(), kPage, file.path);
  REQUIRE(reader.ok());
  static_assert(std::is_same_v<decltype(reader->data()), const std::byte*>);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    *const_cast<volatile std::byte*>(reader->data()) = std::byte{1};
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("a writer cannot map what it opened read-only") {
  const File file;
  const UniqueFd read_only(::open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto writer = WriteMapping::map(read_only.get(), kPage, file.path);
  CHECK(writer.status().code() == Code::not_permitted);
  CHECK(writer.status().message().find(file.path) != std::string::npos);
}

TEST_CASE("nothing, and more than there are addresses, cannot be mapped") {
  const File file;
  CHECK(ReadMapping::map(file.fd.get(), 0, file.path).status().code() == Code::refused);
  const auto all = ReadMapping::map(file.fd.get(), std::uint64_t{1} << 60, file.path);
  CHECK(all.status().code() == Code::no_space);
  CHECK(all.status().message().find("1,152,921,504,606,846,976 bytes") != std::string::npos);
}

TEST_CASE("under an address space limit a mapping fails with both numbers, and older ones stay") {
  const File file;
  CHECK(
      in_child([&]() -> std::string {
        if (kSanitized) return {};
        auto before = ReadMapping::map(file.fd.get(), kPage, file.path);
        if (!before.ok()) return before.status().message();
        const rlimit limit{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
        if (::setrlimit(RLIMIT_AS, &limit) != 0) return "no limit";
        const auto after = ReadMapping::map(file.fd.get(), kSpan, file.path);
        if (after.ok()) return "mapped";
        if (after.status().code() != Code::no_space) return after.status().message();
        const std::string& text = after.status().message();
        for (const char* part : {"cannot map 3,221,225,472 bytes", "1,073,741,824", "RLIMIT_AS"}) {
          if (text.find(part) == std::string::npos) return text;
        }
        return before->data()[0] == std::byte{0} ? "" : "lost the old mapping";
      }) == "");
}

TEST_CASE("a mapping moves, and outlives the file's name") {
  File file;
  auto made = WriteMapping::map(file.fd.get(), kPage, file.path);
  REQUIRE(made.ok());
  made->data()[0] = std::byte{7};
  WriteMapping kept = *std::move(made);
  file.fd.reset();
  REQUIRE(::unlink(file.path.c_str()) == 0);
  CHECK(kept.data()[0] == std::byte{7});
  CHECK(kept.size() == kPage);
}

}  // namespace
}  // namespace fingerpost
