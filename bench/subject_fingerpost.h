// Fingerpost itself, through the reader that workers link; and the machine's own limits over the
// same bytes.
#pragma once

#include "bench/bench_segment.h"
#include "reader/reader.h"

namespace fingerpost::bench {

class FingerpostSubject final : public Subject {
 public:
  explicit FingerpostSubject(const std::string& path);

  bool can(Way) const override { return true; }
  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t size) override;
  const Reader& reader() const { return reader_; }

 private:
  std::uint64_t ask_in_batches(const Stream& stream, std::size_t first, std::size_t last,
                               std::size_t size) const;

  Reader reader_;
};

// A file mapped read-only at a multiple of the size of a huge page.
class AlignedMapping {
 public:
  AlignedMapping(int fd, std::size_t bytes);
  ~AlignedMapping();
  AlignedMapping(const AlignedMapping&) = delete;
  AlignedMapping& operator=(const AlignedMapping&) = delete;
  const std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

// What no table can beat, over the very lines that a lookup of each question ends in. Dependent: a
// chase, where the place of the next line comes from the line before. Independent: a gather, where
// nothing waits. No hash, no compare, no protocol.
class LimitsSubject final : public Subject {
 public:
  // `huge_pages`: over a mapping of its own that is aligned to them, and asks for them. From then
  // on the file consists of huge pages; a mapping that is not aligned goes on through small ones.
  LimitsSubject(BenchSegment& segment, const Stream& stream, bool huge_pages = false);

  std::uint64_t ask(Way way, const Stream& stream, std::size_t first, std::size_t last,
                    std::size_t size) override;

 private:
  AlignedMapping mapping_;
  const Slot<StdAtomics>* slots_ = nullptr;
  std::vector<std::uint32_t> lines_;  // of question i
};

}  // namespace fingerpost::bench
