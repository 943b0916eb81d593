// fingerpost snapshot list|inspect|verify
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <iostream>
#include <memory>

#include "shm/number_text.h"
#include "syncer/snapshot_store.h"
#include "tools/cli_segment.h"
#include "tools/cli_verbs.h"

namespace fingerpost {
namespace {

std::string time_text(std::int64_t unix_ns) {
  if (unix_ns == 0) return {};
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(unix_ns / 1'000'000'000)));
}

nlohmann::json json_of(const SnapshotInfo& info) {
  const SnapshotHeader& header = info.header;
  return {{"path", info.path},
          {"format", header.format},
          {"directory_id", to_string(header.directory_id)},
          {"incarnation", header.incarnation},
          {"version", header.cursor.version},
          {"nonce", header.cursor.nonce},
          {"replay_from",
           header.replay_from == 0 ? nlohmann::json() : nlohmann::json(header.replay_from)},
          {"last_sync", text_or_null(time_text(header.last_sync_unix_ns))},
          {"bytes", header.file_bytes()},
          {"blocks", header.blocks()},
          {"entries", header.entries},
          {"tombstones", header.tombstones}};
}

nlohmann::json json_of(const IoStats& io) {
  return {{"backend", text_or_null(io.backend)},
          {"depth_reached", io.depth_reached},
          {"requests", io.requests},
          {"continued", io.continued},
          {"repeated", io.repeated},
          {"strays", io.strays},
          {"bytes_read", io.bytes_read},
          {"ring_fault",
           io.ring_fault.error == 0
               ? nlohmann::json()
               : nlohmann::json({{"call", io.ring_fault.call}, {"errno", io.ring_fault.error}})}};
}

nlohmann::json json_of(const DirectoryLayout& layout) {
  const std::string_view fallback = layout.fallback == Fallback::buckets ? "buckets"
                                    : layout.fallback == Fallback::hash  ? "hash"
                                                                         : "none";
  return {{"schema_version", layout.schema_version},
          {"fallback", fallback},
          {"buckets", layout.buckets},
          {"hash_shards", layout.hash_shards},
          {"replay_floor", layout.replay_floor},
          {"epoch", layout.epoch}};
}

nlohmann::json json_of(const ShardSpec& spec) {
  nlohmann::json attributes = nlohmann::json::object();
  for (const auto& [name, value] : spec.attributes) attributes[name] = value;
  return {{"shard", spec.name},    {"primary", spec.primary}, {"replicas", spec.replicas},
          {"region", spec.region}, {"weight", spec.weight},   {"attributes", attributes}};
}

// Missing files and folders are out of reach; bytes that are wrong are a no.
ExitStatus exit_status_of_file(const Status& status) {
  return status.code() == Code::corrupt || status.code() == Code::other_layout
             ? ExitStatus::no
             : exit_status_of(status.code());
}

void print_fault(Context& context, const std::string& path, const Status& status) {
  if (context.json) {
    print_json({{"path", path},
                {"good", false},
                {"error", status.message()},
                {"code", to_string(status.code())}});
  } else {
    report_error(context, status);
  }
  context.answer(exit_status_of_file(status));
}

void print_listed(const Context& context, const SnapshotInfo& info) {
  const SnapshotHeader& header = info.header;
  if (context.json) {
    print_json(json_of(info));
    return;
  }
  std::cout << fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n", info.path, header.incarnation,
                           header.cursor.version, header.entries, header.file_bytes(),
                           time_text(header.last_sync_unix_ns));
}

void register_list(CLI::App& snapshot, Context& context) {
  struct Flags {
    std::string state_dir;
    std::string name;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* list = add_verb(
      snapshot, "list",
      "List the snapshots of a segment, newest first: path, incarnation, version, entries, bytes, "
      "time of the last sync",
      "fingerpost snapshot list --state-dir /var/lib/fingerpost --name orders\n"
      "\n"
      "Looks at headers only; verify reads every byte.\n"
      "Exit status: 0 listed. 1 a file is named like a snapshot and is none. 4 no such folder.",
      context);
  list->add_option("--state-dir", flags->state_dir, "The folder that fingerpostd was given")
      ->type_name("DIR")
      ->required();
  list->add_option("--name", flags->name, "The segment's name")->required();
  list->callback([flags, &context] {
    run_verb(context, [&]() -> Status {
      const Result<SnapshotListing> listing = list_snapshots(flags->state_dir, flags->name);
      if (!listing) return listing.status();
      for (const SnapshotInfo& info : listing->good) print_listed(context, info);
      for (const SnapshotFault& fault : listing->faults) {
        print_fault(context, fault.path, fault.why);
      }
      return {};
    });
  });
}

struct RecordCounts {
  std::uint64_t overrides = 0;
  std::uint64_t splits = 0;
  std::uint64_t buckets = 0;
  std::uint64_t tombstones = 0;
};

Status read_to_end(SnapshotReader& reader, RecordCounts& counts) {
  for (;;) {
    BlockView block;
    const Result<bool> more = reader.next_block(block);
    if (!more) return more.status();
    if (!*more) return reader.finish();
    for (SnapshotRecord record; block.next(record);) {
      switch (record.kind) {
        case RecordKind::entry:
          ++counts.overrides;
          break;
        case RecordKind::split:
          ++counts.splits;
          break;
        case RecordKind::bucket:
          ++counts.buckets;
          break;
        case RecordKind::tombstone:
          ++counts.tombstones;
          break;
      }
    }
  }
}

void print_inspected_json(const SnapshotInfo& info, const RecordCounts& counts, const IoStats& io,
                          const Status& status) {
  nlohmann::json object = json_of(info);
  object["layout"] = json_of(info.meta.layout);
  object["shards"] = nlohmann::json::array();
  for (const ShardSpec& spec : info.meta.topology) object["shards"].push_back(json_of(spec));
  object["records"] = {{"overrides", counts.overrides},
                       {"splits", counts.splits},
                       {"buckets", counts.buckets},
                       {"tombstones", counts.tombstones}};
  object["io"] = json_of(io);
  object["good"] = status.ok();
  object["error"] = text_or_null(status.message());
  print_json(object);
}

void print_inspected(const SnapshotInfo& info, const RecordCounts& counts, const IoStats& io,
                     const Status& status) {
  const auto line = [](std::string_view label, const std::string& text) {
    std::cout << fmt::format("{:<12}{}\n", label, text);
  };
  const SnapshotHeader& header = info.header;
  const DirectoryLayout& layout = info.meta.layout;
  line("path", fmt::format("{} (format {})", info.path, header.format));
  line("state", status.ok() ? "good" : "not good: " + status.message());
  line("directory", to_string(header.directory_id));
  line("version", fmt::format("{} (incarnation {}, nonce {})", header.cursor.version,
                              header.incarnation, header.cursor.nonce));
  if (header.replay_from != 0) line("replay from", fmt::format("{}", header.replay_from));
  const std::string synced = time_text(header.last_sync_unix_ns);
  line("last sync", synced.empty() ? "unknown" : synced);
  line("bytes",
       fmt::format("{} in {} blocks", grouped(header.file_bytes()), grouped(header.blocks())));
  line("records", fmt::format("{} overrides, {} split tenants, {} buckets, {} tombstones",
                              grouped(counts.overrides), grouped(counts.splits),
                              grouped(counts.buckets), grouped(counts.tombstones)));
  line("fallback", layout.fallback == Fallback::buckets ? grouped(layout.buckets) + " buckets"
                   : layout.fallback == Fallback::hash
                       ? fmt::format("hash over {}", fmt::join(layout.hash_shards, ", "))
                       : std::string("none"));
  line("read by", fmt::format("{}, {} requests, {} deep, {} bytes{}",
                              io.backend.empty() ? "nothing" : io.backend, io.requests,
                              io.depth_reached, grouped(io.bytes_read),
                              io.ring_fault.error == 0
                                  ? ""
                                  : fmt::format("; no ring: {} gave errno {}", io.ring_fault.call,
                                                io.ring_fault.error)));
  for (const ShardSpec& spec : info.meta.topology) {
    line("shard", fmt::format("{}\t{}\t{}\t{}", spec.name, spec.primary, spec.region, spec.weight));
  }
}

void register_inspect(CLI::App& snapshot, Context& context) {
  auto path = std::make_shared<std::string>();
  CLI::App* inspect =
      add_verb(snapshot, "inspect", "Show what a snapshot holds, and how it was read",
               "fingerpost snapshot inspect /var/lib/fingerpost/orders-1760000000-42.fps --json\n"
               "\n"
               "Exit status: 0 every byte is good. 1 it is no good snapshot. 4 no such file.",
               context);
  inspect->add_option("FILE", *path, "The snapshot")->required();
  inspect->callback([path, &context] {
    run_verb(context, [&]() -> Status {
      const auto reader = SnapshotReader::open(*path, IoOptions{});
      if (!reader) {
        print_fault(context, *path, reader.status());
        return {};
      }
      RecordCounts counts;
      const Status status = read_to_end(**reader, counts);
      const IoStats io = (*reader)->io_stats();
      if (context.json) {
        print_inspected_json((*reader)->info(), counts, io, status);
      } else {
        print_inspected((*reader)->info(), counts, io, status);
      }
      if (!status.ok()) context.answer(exit_status_of_file(status));
      return {};
    });
  });
}

void verify(Context& context, const std::string& path) {
  const Result<SnapshotVerdict> verdict = verify_snapshot(path, IoOptions{});
  if (!verdict) {
    print_fault(context, path, verdict.status());
    return;
  }
  const SnapshotHeader& header = verdict->info.header;
  if (context.json) {
    nlohmann::json object = json_of(verdict->info);
    object["good"] = true;
    object["io"] = json_of(verdict->io);
    print_json(object);
    return;
  }
  std::cout << fmt::format("{}: good, {} entries at version {}\n", path, grouped(header.entries),
                           header.cursor.version);
}

void register_verify(CLI::App& snapshot, Context& context) {
  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* verb = add_verb(
      snapshot, "verify", "Read every byte of snapshots and say whether they are good",
      "fingerpost snapshot verify /var/lib/fingerpost/orders-*.fps\n"
      "\n"
      "Exit status: 0 all are good. 1 one is not; where it is wrong stands on standard error, with "
      "--json in `error`. 4 no such file.",
      context);
  verb->add_option("FILE", *paths, "The snapshots")->required();
  verb->callback([paths, &context] {
    run_verb(context, [&]() -> Status {
      for (const std::string& path : *paths) verify(context, path);
      return {};
    });
  });
}

}  // namespace

void register_snapshot_verbs(CLI::App& app, Context& context) {
  CLI::App* snapshot = app.add_subcommand("snapshot", "The snapshot files that a start loads");
  snapshot->require_subcommand(1);
  register_list(*snapshot, context);
  register_inspect(*snapshot, context);
  register_verify(*snapshot, context);
}

}  // namespace fingerpost
