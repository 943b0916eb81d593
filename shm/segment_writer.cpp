#include "shm/segment_writer.h"

namespace fingerpost {

template class SegmentWriter<StdAtomics>;

}  // namespace fingerpost
