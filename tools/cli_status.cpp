// fingerpost status
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "shm/counters.h"
#include "shm/number_text.h"
#include "tools/cli_segment.h"
#include "tools/cli_verbs.h"
#include "tools/directory_entry.h"
#include "tools/text.h"

namespace fingerpost {
namespace {

constexpr const char* kExample =
    "fingerpost status orders\n"
    "  until fingerpost status orders --ready; do sleep 1; done\n"
    "\n"
    "`age` is of the data, `syncer` of its last sign of life: a segment serves on without one.\n"
    "Exit status: 0 shown, be the syncer alive or not; with --ready: 0 ready, 1 not ready, or no "
    "segment yet.";

constexpr std::chrono::seconds kSignLate{2};  // four beats, as readers judge it

std::uint64_t value_of(const SegmentStatus& status, Counter counter) {
  return status.counters[static_cast<std::size_t>(counter)];
}

void print_status_json(const std::string& name, const SegmentStatus& status,
                       const Readiness& readiness, std::optional<std::chrono::nanoseconds> age) {
  nlohmann::json counters = nlohmann::json::object();
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    counters[std::string(to_string(static_cast<Counter>(i)))] = status.counters[i];
  }
  const std::uint64_t entries = value_of(status, Counter::entries);
  print_json({{"name", name},
              {"path", status.path},
              {"layout_version", status.layout_version},
              {"directory_id", to_string(status.directory_id)},
              {"incarnation", status.incarnation},
              {"ready", readiness.ready},
              {"stale", readiness.stale},
              {"reason", text_or_null(readiness.reason)},
              {"serving", status.serving},
              {"generation", status.generation},
              {"version", status.version},
              {"replay_from",
               status.replay_from == 0 ? nlohmann::json() : nlohmann::json(status.replay_from)},
              {"entries", entries},
              {"buckets", status.buckets},
              {"hash_shards", status.hash_shards},
              {"shards", status.shards},
              {"capacity", status.capacity},
              {"slots", status.slots},
              {"load", status.slots == 0 ? nlohmann::json()
                                         : nlohmann::json(static_cast<double>(entries) /
                                                          static_cast<double>(status.slots))},
              {"table_bytes", status.table_bytes},
              {"reserved_bytes", status.reserved_bytes},
              {"age_ms", milliseconds_or_null(age)},
              {"heartbeat_age_ms", milliseconds_or_null(status.heartbeat_age)},
              {"source",
               {{"kind", text_or_null(status.source_kind)},
                {"state", status.source_state},
                {"last_error", text_or_null(status.last_error)}}},
              {"quarantined", value_of(status, Counter::quarantined)},
              {"withheld", value_of(status, Counter::withheld)},
              {"counters", counters}});
}

std::string fallback_of(const SegmentStatus& status) {
  if (status.buckets != 0) return grouped(status.buckets) + " buckets";
  if (status.hash_shards != 0) return fmt::format("hash over {} shards", status.hash_shards);
  return "none";
}

std::string syncer_of(const SegmentStatus& status) {
  if (!status.heartbeat_age) return "no sign of life yet";
  if (*status.heartbeat_age <= kSignLate) return "alive";
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(*status.heartbeat_age);
  return "no sign of life for " + spoken_duration(age.count());
}

void print_status(const std::string& name, const SegmentStatus& status, const Readiness& readiness,
                  std::optional<std::chrono::nanoseconds> age) {
  const auto line = [](std::string_view label, const std::string& text) {
    std::cout << fmt::format("{:<12}{}\n", label, text);
  };
  const std::uint64_t entries = value_of(status, Counter::entries);
  line("name", name);
  line("path", fmt::format("{} (layout {})", status.path, status.layout_version));
  line("state", text_of(readiness));
  line("serving", std::string(status.serving));
  line("age", age ? fmt::format("{:.1f} s", std::chrono::duration<double>(*age).count())
                  : std::string("unknown"));
  line("syncer", syncer_of(status));
  line("directory", to_string(status.directory_id));
  line("version", fmt::format("{} (incarnation {}, generation {})", status.version,
                              status.incarnation, status.generation));
  line("source",
       fmt::format("{} {}{}", status.source_kind, status.source_state,
                   status.last_error.empty() ? "" : "; last error: " + status.last_error));
  line("entries", fmt::format("{} of {}; {} slots, load {:.2f}", grouped(entries),
                              grouped(status.capacity), grouped(status.slots),
                              status.slots == 0 ? 0.0
                                                : static_cast<double>(entries) /
                                                      static_cast<double>(status.slots)));
  line("fallback", fallback_of(status));
  line("shards", grouped(status.shards));
  line("memory", fmt::format("{} bytes of table, {} reserved", grouped(status.table_bytes),
                             grouped(status.reserved_bytes)));
  line("set aside",
       set_aside_text(value_of(status, Counter::quarantined), value_of(status, Counter::withheld)));
  for (std::size_t i = static_cast<std::size_t>(Counter::rows_applied); i < kCounterCount; ++i) {
    if (status.counters[i] == 0) continue;
    std::cout << fmt::format("  {:<22}{}\n", to_string(static_cast<Counter>(i)),
                             grouped(status.counters[i]));
  }
}

Status show(const Context& context, const std::string& name) {
  const Result<Reader> reader = Reader::open(name);
  if (!reader) return reader.status();
  const Readiness readiness = reader->readiness();
  const auto age = reader->age();
  if (context.json) {
    print_status_json(name, reader->status(), readiness, age);
  } else {
    print_status(name, reader->status(), readiness, age);
  }
  return {};
}

// For probes: whatever keeps a worker from starting with this segment now is a no, and one line
// says why.
Status probe(Context& context, const std::string& name) {
  const Result<Reader> reader = Reader::open(name);
  if (!reader && reader.status().code() == Code::refused) return reader.status();
  const Readiness readiness =
      reader ? reader->readiness() : Readiness{false, true, reader.status().message()};
  if (context.json) {
    print_json({{"name", name},
                {"ready", readiness.ready},
                {"stale", readiness.stale},
                {"reason", text_or_null(readiness.reason)}});
  } else {
    std::cout << text_of(readiness) << '\n';
  }
  if (!readiness.ready) context.answer(ExitStatus::no);
  return {};
}

}  // namespace

void register_status_verb(CLI::App& app, Context& context) {
  struct Flags {
    std::string name;
    bool ready = false;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* verb =
      add_segment_verb(app, "status", "Show how a segment is", kExample, context, flags->name);
  verb->add_flag("--ready", flags->ready, "Only whether a worker may start with it, for probes");
  verb->callback([flags, &context] {
    run_verb(context, [&] {
      return flags->ready ? probe(context, flags->name) : show(context, flags->name);
    });
  });
}

}  // namespace fingerpost
