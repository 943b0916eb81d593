// The order in which a batch reaches the table, so that at every instant every single id shows its
// old or its new route, never a third.
//
// An override that shields its tenants from a changed bucket is in place before the bucket changes;
// one that goes uncovers the bucket only after it has changed. The batch's topology comes before all
// of them, its version after.
#pragma once

#include <array>
#include <cstdint>

namespace fingerpost {

enum class BatchStep : std::uint8_t { overrides, fallback, removals };

inline constexpr std::array kBatchOrder = {BatchStep::overrides, BatchStep::fallback,
                                           BatchStep::removals};

}  // namespace fingerpost
