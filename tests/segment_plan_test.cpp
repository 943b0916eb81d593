#include "shm/segment_plan.h"

#include <doctest/doctest.h>

#include <random>

using namespace fingerpost;

TEST_CASE(
    "a plan is plausible from the smallest to the largest capacity, and its parts do not overlap") {
  for (const std::uint64_t capacity :
       {std::uint64_t{1}, std::uint64_t{1'000}, kCapacityDefault, kCapacityMax}) {
    for (const std::uint64_t topology : {std::uint64_t{0}, kTopologyBytesMin, kTopologyBytesMax}) {
      const SegmentPlan plan = SegmentPlan::make(capacity, topology);
      CHECK(plan.plausible());
      CHECK(plan.control_at >= kFileHeaderBytes);
      CHECK(plan.topology_at >= plan.control_at + sizeof(ControlBlock<StdAtomics>));
      CHECK(plan.topology_bytes >= topology);
      CHECK(plan.half_at[0] >= plan.topology_at + plan.topology_bytes);
      CHECK(plan.half_at[1] == plan.half_at[0] + plan.half_bytes);
      CHECK(plan.span_bytes == plan.half_at[1] + plan.half_bytes);
      for (const std::uint64_t at : plan.half_at) CHECK(at % kHugeBytes == 0);
      CHECK(plan.control_at % kLineBytes == 0);
      CHECK(plan.topology_at % kLineBytes == 0);
    }
  }
}

TEST_CASE(
    "the default plan spans what the documentation says: about three gigabytes for 16 M entries") {
  const SegmentPlan plan = SegmentPlan::make(kCapacityDefault);
  CHECK(plan.span_bytes > std::uint64_t{29} * 100'000'000);
  CHECK(plan.span_bytes < std::uint64_t{33} * 100'000'000);
  CHECK(plan.fixed_bytes() == kHugeBytes);
}

TEST_CASE("no plan whose parts reach outside its span is plausible, wrapping sums included") {
  const auto inside = [](const SegmentPlan& plan) {
    __extension__ using Wide = unsigned __int128;
    const auto fits = [&](std::uint64_t at, std::uint64_t bytes) {
      return Wide{at} + bytes <= Wide{plan.span_bytes};
    };
    return fits(plan.control_at, sizeof(ControlBlock<StdAtomics>)) &&
           fits(plan.topology_at, plan.topology_bytes) && fits(plan.half_at[0], plan.half_bytes) &&
           fits(plan.half_at[1], plan.half_bytes);
  };
  const std::uint64_t top = ~std::uint64_t{0};
  const std::uint64_t edges[] = {
      0, 64, 4'096, top - 4'095, top - 63, top, std::uint64_t{1} << 63, std::uint64_t{1} << 46};
  std::mt19937_64 random(5);
  std::uint64_t believed = 0;
  std::uint64_t outside = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    SegmentPlan plan = SegmentPlan::make(1'000);
    std::uint64_t* fields[] = {&plan.control_at, &plan.topology_at, &plan.topology_bytes,
                               &plan.half_at[0], &plan.half_at[1],  &plan.half_bytes,
                               &plan.span_bytes};
    const auto changes = random() % 4;
    for (std::uint64_t k = 0; k < changes; ++k) {
      std::uint64_t& field = *fields[random() % 7];
      const std::uint64_t edge = edges[random() % 8];
      field = random() % 2 == 0 ? edge : field + edge;
    }
    if (random() % 2 == 0) {  // consistent sums, whatever the terms
      plan.half_at[1] = plan.half_at[0] + plan.half_bytes;
      plan.span_bytes = plan.half_at[1] + plan.half_bytes;
    }
    if (!plan.plausible()) continue;
    ++believed;
    outside += !inside(plan);
  }
  CHECK(believed > 0);
  CHECK(outside == 0);
}
