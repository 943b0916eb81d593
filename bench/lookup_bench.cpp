// Single operations: every subject gets the same questions, in turn, in every repetition.
//
// One repetition of one benchmark is one round: each subject, in each way of asking, is warmed with
// questions of the same stream and then timed over the same others. A counter "subject.way" holds
// its nanoseconds per lookup, so that ratios can be taken within a round. Every answer is checked.
//
//   lookup_bench --scale=tiny|quick|full [--benchmark_… as Google Benchmark has them]
#include <benchmark/benchmark.h>

#include <cstring>
#include <iostream>
#include <optional>

#include "bench/machine.h"
#include "bench/program.h"
#include "bench/subject_fingerpost.h"
#include "bench/unordered_map_bench.h"

namespace fingerpost::bench {
namespace {

struct Scale {
  std::uint64_t small = 10'000;
  std::uint64_t large = 1'000'000;
  std::uint64_t huge = 10'000'000;
  std::size_t questions = 400'000;
  int rounds = 9;
  bool all_shapes = false;
};

std::optional<Scale> scale_of(std::string_view name) {
  if (name == "tiny") return Scale{500, 2'000, 5'000, 2'000, 2, true};
  if (name == "quick") return Scale{};
  if (name == "full") return Scale{10'000, 1'000'000, 10'000'000, 1'000'000, 21, true};
  return std::nullopt;
}

// What one benchmark measures.
struct Setup {
  std::string name;
  Contents contents;
  Mix mix = Mix::hit;
  bool with_peers = false;
  bool huge_limits = false;  // the limits on huge pages as well, over a copy
};

// One number per round.
struct Measurement {
  std::string name;
  Subject* subject;
  Way way;
  std::size_t batch = 1;
};

class Round {
 public:
  Round(const Setup& setup, std::size_t questions)
      : segment_(setup.contents),
        stream_(setup.contents.shape, setup.contents.entries, questions + questions / 4, setup.mix,
                mix(setup.contents.entries)),
        questions_(questions) {
    add("ours", std::make_unique<FingerpostSubject>(segment_.path()), setup.mix);
    if (setup.mix == Mix::hit) {
      subjects_.push_back(std::make_unique<LimitsSubject>(segment_, stream_));
      measurements_.push_back({"gather.independent", subjects_.back().get(), Way::independent});
      measurements_.push_back({"chase.dependent", subjects_.back().get(), Way::dependent});
    }
    if (setup.huge_limits) {
      subjects_.push_back(
          std::make_unique<LimitsSubject>(huge_segment_.emplace(setup.contents), stream_, true));
      measurements_.push_back(
          {"gather_huge_pages.independent", subjects_.back().get(), Way::independent});
      measurements_.push_back(
          {"chase_huge_pages.dependent", subjects_.back().get(), Way::dependent});
    }
    if (!setup.with_peers) return;
    for (const Peer& peer : peers()) add(peer.name, peer.make(setup.contents), setup.mix);
  }

  void run(benchmark::State& state) {
    for (std::size_t i = 0; i < measurements_.size(); ++i) {
      const Measurement& m = measurements_[(i + round_) % measurements_.size()];
      state.counters[m.name] = time(m);
    }
    ++round_;
  }

 private:
  void add(const std::string& name, std::unique_ptr<Subject> subject, Mix mix) {
    measurements_.push_back({name + ".independent", subject.get(), Way::independent});
    // A miss answers 0, which the processor guesses: nothing would depend on it.
    if (mix == Mix::hit)
      measurements_.push_back({name + ".dependent", subject.get(), Way::dependent});
    if (subject->can(Way::batch)) {
      for (const std::size_t size : {4U, 16U, 32U, 64U}) {
        measurements_.push_back(
            {name + ".batch" + std::to_string(size), subject.get(), Way::batch, size});
      }
    }
    subjects_.push_back(std::move(subject));
  }

  double time(const Measurement& m) {
    const std::size_t count = std::min(questions_, m.subject->questions_max());
    const std::size_t warm = std::min(questions_ / 4, m.subject->questions_max());
    m.subject->ask(m.way, stream_, questions_, questions_ + warm, m.batch);
    const auto clock = m.subject->waits() ? now_ns : thread_ns;
    const std::int64_t begin = clock();
    const std::uint64_t sum = m.subject->ask(m.way, stream_, 0, count, m.batch);
    const std::int64_t end = clock();
    if (sum != stream_.sum(count)) throw std::runtime_error("a wrong answer from " + m.name);
    return static_cast<double>(end - begin) / static_cast<double>(count);
  }

  BenchSegment segment_;
  std::optional<BenchSegment> huge_segment_;
  Stream stream_;
  std::size_t questions_;
  std::vector<std::unique_ptr<Subject>> subjects_;
  std::vector<Measurement> measurements_;
  std::size_t round_ = 0;
};

// The tables of one benchmark at a time: they are built at its first round and go with its last.
template <class Make, class Run>
void register_rounds(const std::string& name, int rounds, Make make, Run run) {
  using Table = std::remove_reference_t<decltype(*make())>;
  auto table = std::make_shared<std::unique_ptr<Table>>();
  auto left = std::make_shared<int>(rounds);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 if (!*table) *table = make();
                                 for ([[maybe_unused]] auto once : state) run(**table, state);
                                 if (--*left == 0) table->reset();
                               })
      ->Iterations(1)
      ->Repetitions(rounds)
      ->ReportAggregatesOnly(false)
      ->Unit(benchmark::kMillisecond);
}

void register_setup(const Setup& setup, const Scale& scale) {
  register_rounds(
      setup.name, scale.rounds, [=] { return std::make_unique<Round>(setup, scale.questions); },
      [](Round& round, benchmark::State& state) { round.run(state); });
}

void register_all(const Scale& scale) {
  const Contents small{KeyShape::uuid, scale.small};
  const Contents large{KeyShape::uuid, scale.large};
  const Contents huge{KeyShape::uuid, scale.huge};
  register_setup({"lookup/10k", small, Mix::hit, true, false}, scale);
  register_setup({"lookup/1m", large, Mix::hit, true, true}, scale);
  register_setup({"lookup/10m", huge, Mix::hit, false, scale.all_shapes}, scale);
  register_setup({"lookup/1m/miss", large, Mix::miss, false, false}, scale);
  register_setup({"lookup/1m/zipf", large, Mix::zipf, false, false}, scale);
  for (const KeyShape shape : kKeyShapes) {
    if (!scale.all_shapes || shape == KeyShape::uuid) continue;
    const std::string name = "lookup/1m/" + std::string(to_string(shape));
    register_setup({name, {shape, scale.large}, Mix::hit, false, false}, scale);
  }
  register_rounds(
      "bucket", scale.rounds, [] { return std::make_unique<BucketComparison>(); },
      [](BucketComparison& comparison, benchmark::State& state) {
        comparison.ours();  // warm, both alike
        comparison.unordered_map();
        state.counters["ours"] = comparison.ours();
        state.counters["unordered_map"] = comparison.unordered_map();
      });
}

int run(int argc, char** argv) {
  std::optional<Scale> scale = scale_of("quick");
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kScaleFlag)) {
      scale = scale_of(word.substr(kScaleFlag.size()));
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  benchmark::Initialize(&argc, argv);
  if (!scale || benchmark::ReportUnrecognizedArguments(argc, argv)) {
    std::cerr << "usage: lookup_bench [--scale=tiny|quick|full] [--benchmark_…]\n";
    return 2;
  }
  pin_to(measured_cpu());
  std::string names;
  for (const Peer& peer : peers()) names += (names.empty() ? "" : " ") + peer.name;
  benchmark::AddCustomContext("peers", names);
  register_all(*scale);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fingerpost::bench

int main(int argc, char** argv) {
  using namespace fingerpost::bench;
  return run_main("lookup_bench", argc, argv, run);
}
