#include "syncer/snapshot_io.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "shm/unique_fd.h"
#include "tests/awkward_backend.h"
#include "tests/temp_folder.h"

namespace fingerpost {
namespace {

struct Piece {
  std::size_t offset;
  std::size_t size;
};

std::vector<std::byte> random_bytes(std::size_t size) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

std::vector<Piece> random_pieces(std::size_t total, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < total;) {
    const std::size_t size = std::min<std::size_t>(total - at, 1 + random() % 20'000);
    pieces.push_back({at, size});
    at += size;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

// Writes `bytes` in shuffled pieces and reads them back through the same io. What was read.
std::vector<std::byte> through(SnapshotIo& io, const std::vector<std::byte>& bytes, unsigned seed) {
  const TempFolder folder;
  const UniqueFd file(::open(folder.file("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const std::vector<Piece> pieces = random_pieces(bytes.size(), seed);
  std::vector<std::byte> read(bytes.size());
  IoResult result;
  for (const bool writing : {true, false}) {
    std::size_t answered = 0;
    const auto take = [&] {
      REQUIRE(io.next(result, true));
      const Piece& piece = pieces[result.tag];
      CHECK(result.error == 0);
      CHECK(result.bytes == piece.size);
      if (!writing) std::memcpy(read.data() + piece.offset, result.buffer.get(), piece.size);
      io.give_back(std::move(result.buffer));
      ++answered;
    };
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      while (io.in_flight() == io.depth()) take();
      IoBuffer buffer = io.take_buffer();
      const auto [offset, size] = pieces[i];
      if (writing) {
        std::memcpy(buffer.get(), bytes.data() + offset, size);
        io.write(i, file.get(), offset, std::move(buffer), size);
      } else {
        io.read(i, file.get(), offset, std::move(buffer), size);
      }
    }
    while (io.in_flight() > 0) take();
    CHECK(answered == pieces.size());
    io.sync(0, file.get());
    REQUIRE(io.next(result, true));
    CHECK(result.error == 0);
  }
  return read;
}

TEST_CASE("what is written is read back, by the ring and by plain calls") {
  const auto bytes = random_bytes(1'500'000);
  for (const IoChoice choice : {IoChoice::plain, IoChoice::automatic}) {
    SnapshotIo io(IoOptions{choice, 8});
    CHECK(through(io, bytes, 1) == bytes);
    CHECK(io.stats().bytes_written == bytes.size());
    CHECK(io.stats().bytes_read == bytes.size());
    CHECK(io.stats().depth_reached == 8);
    if (choice == IoChoice::plain) CHECK(io.stats().backend == "plain");
    if (io.stats().backend == "plain") continue;
    CHECK(io.stats().backend == "io_uring");
    CHECK(io.stats().ring_fault.error == 0);
  }
}

TEST_CASE("short, shuffled, cancelled and repeated completions lose and double nothing") {
  const auto bytes = random_bytes(600'000);
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    Awkwardness how;
    how.shortens = true;
    how.cancels = seed % 2 == 1;
    how.repeats_answers = seed % 3 == 1;
    SnapshotIo io(1 + seed, std::make_unique<AwkwardBackend>(how, seed));
    CHECK(through(io, bytes, seed) == bytes);
    CHECK(io.stats().continued > 0);
    CHECK((io.stats().repeated > 0) == how.cancels);
    CHECK((io.stats().strays > 0) == how.repeats_answers);
    CHECK(io.stats().backend == "awkward");
  }
}

TEST_CASE("a ring that fails midway is replaced, whatever it holds at that moment") {
  const auto bytes = random_bytes(600'000);
  for (int starts = 0; starts < 150; starts += 7) {
    CAPTURE(starts);
    Awkwardness how;
    how.shortens = true;
    how.cancels = true;
    how.starts_until_fault = starts;
    how.keeps_buffers = starts % 2 == 1;
    const auto seed = static_cast<unsigned>(starts);
    SnapshotIo io(6, std::make_unique<AwkwardBackend>(how, seed));
    CHECK(through(io, bytes, seed) == bytes);
    CHECK(io.stats().backend == "plain");
    CHECK(io.stats().ring_fault.call == "io_uring_enter");
    CHECK(io.stats().ring_fault.error == EPERM);
  }
}

TEST_CASE("a write that the ring answers with nothing is done plainly and does not loop") {
  const auto bytes = random_bytes(100'000);
  Awkwardness how;
  how.writes_nothing = true;
  SnapshotIo io(4, std::make_unique<AwkwardBackend>(how, 1));
  CHECK(through(io, bytes, 1) == bytes);
  CHECK(io.stats().repeated > 0);
}

TEST_CASE("a read past the end says how much there was") {
  const TempFolder folder;
  const UniqueFd file(::open(folder.file("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::pwrite(file.get(), "0123456789", 10, 0) == 10);
  for (const IoChoice choice : {IoChoice::plain, IoChoice::automatic}) {
    SnapshotIo io(IoOptions{choice, 2});
    io.read(1, file.get(), 4, io.take_buffer(), 100);
    io.read(2, file.get(), 10, io.take_buffer(), 100);
    IoResult result;
    for (int i = 0; i < 2; ++i) {
      REQUIRE(io.next(result, true));
      CHECK(result.error == 0);
      CHECK(result.bytes == (result.tag == 1 ? 6 : 0));
    }
    CHECK_FALSE(io.next(result, true));
  }
}

TEST_CASE("an error is the file's own errno, whichever backend met it") {
  const UniqueFd read_only(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  for (const IoChoice choice : {IoChoice::plain, IoChoice::automatic}) {
    SnapshotIo io(IoOptions{choice, 2});
    io.write(1, read_only.get(), 0, io.take_buffer(), 100);
    IoResult result;
    REQUIRE(io.next(result, true));
    CHECK(result.error == EBADF);
    CHECK(result.buffer != nullptr);
  }
}

TEST_CASE("an io that is dropped with requests in flight waits for them") {
  const TempFolder folder;
  const UniqueFd file(::open(folder.file("f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  for (const IoChoice choice : {IoChoice::plain, IoChoice::automatic}) {
    for (int i = 0; i < 20; ++i) {
      SnapshotIo io(IoOptions{choice, 4});
      for (std::uint64_t n = 0; n < 4; ++n) {
        io.write(n, file.get(), n << 20, io.take_buffer(), kIoBufferBytes);
      }
    }
  }
}

}  // namespace
}  // namespace fingerpost
