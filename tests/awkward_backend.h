// A backend that does real I/O, and as awkwardly as a kernel may: short, out of order, cancelled,
// answered twice, and at a chosen moment not at all any more.
#pragma once

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "syncer/snapshot_io.h"

namespace fingerpost {

struct Awkwardness {
  bool shortens = false;
  bool cancels = false;
  bool repeats_answers = false;
  bool writes_nothing = false;  // answers writes with 0
  int starts_until_fault = -1;  // then refuses everything
  bool keeps_buffers = false;   // and says that the kernel still holds what it holds
};

class AwkwardBackend final : public IoBackend {
 public:
  AwkwardBackend(Awkwardness how, unsigned seed) : how_(how), random_(seed) {}

  std::string_view name() const override { return "awkward"; }
  IoFault fault() const override { return fault_; }

  void start(const IoRequest& request) override {
    if (how_.starts_until_fault >= 0 && how_.starts_until_fault-- == 0) {
      fault_ = {"io_uring_enter", EPERM};
    }
    if (fault_.error != 0) return;
    if (how_.cancels && chance(4)) return answer(request.id, -(chance(2) ? ECANCELED : EINTR));
    if (how_.writes_nothing && request.op == IoOp::write) return answer(request.id, 0);
    IoRequest part = request;
    if (how_.shortens && part.size > 1 && !chance(4)) part.size = 1 + random_() % (part.size - 1);
    if (how_.keeps_buffers && chance(2)) {
      held_.push_back(request.id);
    } else {
      answer(request.id, transfer(part));
    }
  }

  void collect(std::vector<IoCompletion>& done, bool wait) override {
    if (answers_.empty() && wait) fault_ = {"io_uring_enter", EPERM};
    std::shuffle(answers_.begin(), answers_.end(), random_);
    const std::size_t some = answers_.empty() ? 0 : 1 + random_() % answers_.size();
    const auto end = answers_.begin() + static_cast<std::ptrdiff_t>(some);
    done.insert(done.end(), answers_.begin(), end);
    answers_.erase(answers_.begin(), end);
  }

  std::vector<std::uint64_t> release(std::vector<IoCompletion>& done) override {
    done.insert(done.end(), answers_.begin(), answers_.end());
    answers_.clear();
    return std::exchange(held_, {});
  }

 private:
  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  void answer(std::uint64_t id, std::int64_t result) {
    answers_.push_back({id, result});
    if (how_.repeats_answers && chance(3)) answers_.push_back({id, result});
  }

  Awkwardness how_;
  std::mt19937 random_;
  IoFault fault_;
  std::vector<IoCompletion> answers_;
  std::vector<std::uint64_t> held_;
};

}  // namespace fingerpost
