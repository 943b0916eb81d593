// Real worker processes over one real segment, beside a writer: how much of a worker's speed the
// writer costs, and how evenly it is shared.
//
// Every figure has a control: the same workers over the same segment, while the same writer does
// the same to another segment that nobody reads. What differs between the two is ours; what the
// neighbour costs by being there (caches, memory, the clock of the chip) is in both. The two take
// turns window by window, and a ratio is of neighbours in time. Rates are per second of processor
// time, so that whoever else has the machine takes less from them.
//
//   contention_bench --scale=tiny|quick|full       one JSON object on standard output
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <initializer_list>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/machine.h"
#include "bench/program.h"
#include "bench/summary.h"
#include "bench/worker.h"
#include "bench/writer_process.h"

namespace fingerpost::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Scale {
  std::uint64_t entries = 1'000'000;
  std::size_t questions = 262'144;
  int windows = 9;
  int window_ms = 150;
  int rebuild_window_ms = 1'000;
  std::vector<unsigned> workers = {1, 2, 4, 8, 16, 32};
};

Scale scale_of(std::string_view name) {
  if (name == "tiny") return {2'000, 2'048, 2, 10, 20, {1, 2, 4}};
  if (name == "full") return {1'000'000, 1'048'576, 15, 500, 3'000, {1, 2, 4, 8, 16, 32, 64, 128}};
  if (name == "quick") return {};
  throw std::runtime_error("no scale " + std::string(name));
}

// Both sides of a comparison, window by window.
struct Sides {
  std::vector<double> ours;
  std::vector<double> control;
  Json to_json() const {
    return {{"ours", median(ours)},
            {"control", median(control)},
            {"ratio", median_ratio(ours, control)}};
  }
};

class Harness {
 public:
  explicit Harness(const Scale& scale)
      : scale_(scale),
        contents_{KeyShape::uuid, scale.entries},
        stream_(KeyShape::uuid, scale.entries, scale.questions, Mix::hit, 7),
        served_(contents_),
        aside_(contents_),
        on_served_(served_, contents_),
        on_aside_(aside_, contents_) {}

  Json measure() {
    Json out;
    {
      Workers one(served_.path(), stream_, 1);
      for (const std::uint64_t rate : std::initializer_list<std::uint64_t>{0, 1'000, 100'000}) {
        out["throughput"][std::to_string(rate)] = beside_changes(one, rate).to_json();
      }
      out["latency"] = latency(one);
      out["rebuild"] = beside_rebuilds(one).to_json();
      out["writer_changes"] = on_served_.changes();
      out["writer_rebuilds"] = on_served_.rebuilds();
      note(one);
    }
    out["workers"] = by_workers();
    {
      Workers one(served_.path(), stream_, 1);
      out["stopped"] = beside_stopped(one).to_json();
      on_served_.kill();
      Sides dead;
      for (int i = 0; i < scale_.windows; ++i) {
        dead.ours.push_back(rate_of_first(one));
        dead.control.push_back(before_stop_);
      }
      out["dead"] = dead.to_json();
      note(one);
    }
    out["wrong"] = wrong_;
    out["undetermined"] = undetermined_;
    out["rss_anon_kib_per_worker"] = memory_of_a_worker();
    out["entries"] = scale_.entries;
    out["windows"] = scale_.windows;
    out["window_ms"] = scale_.window_ms;
    return out;
  }
  bool all_right() const { return wrong_ == 0 && undetermined_ == 0; }

 private:
  void note(const Workers& workers) {
    wrong_ += workers.wrong();
    undetermined_ += workers.undetermined();
  }

  // Of this program run again, as a worker and nothing else.
  std::uint64_t memory_of_a_worker() const {
    const std::string command = "/proc/" + std::to_string(::getpid()) +
                                "/exe --memory-of-a-worker " + served_.path() + " " +
                                std::to_string(scale_.entries);
    std::FILE* answer = ::popen(command.c_str(), "r");
    unsigned long long kib = 0;
    const bool read = answer != nullptr && std::fscanf(answer, "%llu", &kib) == 1;
    if (answer == nullptr || ::pclose(answer) != 0 || !read)
      throw std::runtime_error("cannot ask a worker for its memory");
    return kib;
  }

  double rate_of_first(Workers& workers) { return workers.run(1, scale_.window_ms)[0].rate(); }

  Sides beside_changes(Workers& one, std::uint64_t rate) {
    Sides sides;
    for (int i = 0; i < scale_.windows; ++i) {
      on_served_.change(rate);
      sides.ours.push_back(rate_of_first(one));
      on_served_.rest();
      on_aside_.change(rate);
      sides.control.push_back(rate_of_first(one));
      on_aside_.rest();
    }
    return sides;
  }

  Sides beside_rebuilds(Workers& one) {
    Sides sides;
    for (int i = 0; i < scale_.windows; ++i) {
      on_served_.rebuild();
      sides.ours.push_back(one.run(1, scale_.rebuild_window_ms)[0].rate());
      on_served_.rest();
      on_aside_.rebuild();
      sides.control.push_back(one.run(1, scale_.rebuild_window_ms)[0].rate());
      on_aside_.rest();
    }
    return sides;
  }

  Sides beside_stopped(Workers& one) {
    Sides sides;
    for (int i = 0; i < scale_.windows; ++i) sides.control.push_back(rate_of_first(one));
    before_stop_ = median(sides.control);
    on_served_.stop_in_batch();
    for (int i = 0; i < scale_.windows; ++i) sides.ours.push_back(rate_of_first(one));
    return sides;
  }

  Json latency(Workers& one) {
    Histogram both[2];
    std::vector<double> p999[2];
    for (int i = 0; i < scale_.windows; ++i) {
      for (const int side : {0, 1}) {
        WriterProcess& writer = side == 0 ? on_served_ : on_aside_;
        writer.change(100'000);
        one.clear_times();
        one.run(1, scale_.window_ms, Order::time);
        writer.rest();
        both[side].add(one.times(0));
        p999[side].push_back(static_cast<double>(one.times(0).quantile(0.999)));
      }
    }
    Json out;
    for (const int side : {0, 1}) {
      Json& one_side = out[side == 0 ? "ours" : "control"];
      one_side["samples"] = both[side].samples();
      for (const auto& [name, part] : {std::pair("p50", 0.5),
                                       {"p90", 0.9},
                                       {"p99", 0.99},
                                       {"p99_9", 0.999},
                                       {"p99_99", 0.9999}}) {
        one_side[name] = both[side].quantile(part);
      }
    }
    out["p99_9_ratio"] = median_ratio(p999[0], p999[1]);
    out["timer_ns"] = timer_cost_ns();
    return out;
  }

  static std::uint64_t timer_cost_ns() {
    Histogram costs;
    for (int i = 0; i < 100'000; ++i) {
      const std::int64_t begin = now_ns();
      costs.record(static_cast<std::uint64_t>(now_ns() - begin));
    }
    return costs.quantile(0.5);
  }

  Json by_workers() {
    Workers all(served_.path(), stream_, scale_.workers.back());
    std::vector<std::vector<double>> rates(scale_.workers.size());
    std::vector<double> slowest(scale_.workers.size(), 1);
    for (int i = 0; i < scale_.windows; ++i) {
      for (std::size_t k = 0; k < scale_.workers.size(); ++k) {
        const unsigned count = scale_.workers[k];
        // Long enough that each of many workers has its turn more than once.
        const auto work = all.run(count, scale_.window_ms * (count > 8 ? 2 : 1));
        rates[k].push_back(sum_of_rates(work));
        double least = HUGE_VAL;
        double most = 0;
        for (const Work& one : work) {
          if (one.cpu_ns == 0) continue;
          least = std::min(least, one.rate());
          most = std::max(most, one.rate());
        }
        slowest[k] = std::min(slowest[k], most == 0 ? 0 : least / most);
      }
    }
    Json out;
    for (std::size_t k = 0; k < scale_.workers.size(); ++k) {
      out[std::to_string(scale_.workers[k])] = {{"rate_per_cpu", median(rates[k])},
                                                {"slowest_over_fastest", slowest[k]},
                                                {"over_2", median_ratio(rates[k], rates[1])}};
    }
    note(all);
    return out;
  }

  Scale scale_;
  Contents contents_;
  Stream stream_;
  BenchSegment served_;
  BenchSegment aside_;
  WriterProcess on_served_;
  WriterProcess on_aside_;
  double before_stop_ = 0;
  std::uint64_t wrong_ = 0;
  std::uint64_t undetermined_ = 0;
};

int run(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "--memory-of-a-worker") {
    const std::uint64_t entries = std::stoull(argv[3]);
    std::cout << anon_kib_of_a_worker(argv[2], entries, entries) << '\n';
    return 0;
  }
  const auto scale_name = scale_argument("contention_bench", argc, argv);
  if (!scale_name) return 2;
  Harness harness(scale_of(*scale_name));
  std::cout << harness.measure().dump(1) << '\n';
  return harness.all_right() ? 0 : 1;
}

}  // namespace
}  // namespace fingerpost::bench

int main(int argc, char** argv) {
  using namespace fingerpost::bench;
  return run_main("contention_bench", argc, argv, run);
}
