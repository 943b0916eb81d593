#include "syncer/batch.h"

#include <algorithm>
#include <cstring>

namespace fingerpost {

std::string_view Batch::keep(std::string_view text) {
  if (text.empty()) return {};
  if (kChunkBytes - used_ < text.size()) {
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(std::max(kChunkBytes, text.size())));
    used_ = 0;
  }
  char* at = chunks_.back().get() + used_;
  std::memcpy(at, text.data(), text.size());
  used_ = std::min(kChunkBytes, used_ + text.size());
  return {at, text.size()};
}

EntryRow Batch::keep(EntryRow row) {
  row.id = keep(row.id);
  row.shard = keep(row.shard);
  row.state = keep(row.state);
  row.target = keep(row.target);
  return row;
}

SplitRow Batch::keep(SplitRow split) {
  split.id = keep(split.id);
  for (EntryRow& part : split.parts) part = keep(part);
  return split;
}

}  // namespace fingerpost
