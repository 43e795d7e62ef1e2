// The collectives of a run as nccl-tests prints them, for comparison with its output.
#pragma once

#include "harness/record/record.h"

#include <span>
#include <string>

namespace assay::report {

// One table per op, batching, kind of buffers, NVLS and world size; rows by type and size, out of place and in place
// side by side: size (B), count, type, redop, root, time (us), algbw and busbw (GB/s = 1e9), wrong elements. N/A for
// missing figures. Skips records of other families and those without figures; empty if none remains.
std::string collective_table(std::span<const Record* const> records);

}  // namespace assay::report
