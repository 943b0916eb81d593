// How large a generation is made: for the writer, which makes them, and for whoever asks
// beforehand. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shm/layout.h"
#include "shm/segment_plan.h"
#include "shm/table_writer.h"

namespace fingerpost {

// What a generation has to hold.
struct TableNeeds {
  std::uint64_t entries = 0;
  std::uint64_t record_words = 0;
  FallbackKind fallback_kind = FallbackKind::none;
  std::uint64_t fallback_count = 0;
};

constexpr Geometry geometry_for(const TableNeeds& needs) {
  Geometry geometry;
  geometry.group_count = groups_for(needs.entries);
  geometry.fallback_count = needs.fallback_count;
  // Room for moves and late long ids besides what is known: a word for sixteen slots, at least 32
  // KiB.
  geometry.records_words = needs.record_words + needs.record_words / 4 +
                           std::max<std::uint64_t>(4'096, geometry.group_count);
  return geometry;
}

// What is reserved in its half for a generation.
constexpr std::uint64_t reserved_for(const Geometry& geometry) {
  return round_up(geometry.bytes(), kHugeBytes);
}

// For how many entries the next generation of a table with `live` of `slots` taken is made: the
// same size, or a quarter more.
constexpr std::uint64_t entries_of_next(std::uint64_t slots, std::uint64_t live) {
  const auto count = static_cast<double>(slots);
  const double factor = static_cast<double>(live) > kGrowLoad * count ? 1.25 : 1.0;
  return std::max(live, static_cast<std::uint64_t>(count * factor * kLoadTarget) - 1);
}

}  // namespace fingerpost
