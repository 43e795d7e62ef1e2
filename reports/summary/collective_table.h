// The collectives of a run as nccl-tests prints them, so that figures can be laid side by side with its output.
#pragma once

#include "harness/record/record.h"

#include <span>
#include <string>

namespace assay::report {

// One table for each op, batching and world size, rows by type and size, out of place and in place side by side:
// size (B), count, type, redop, root, time (us), algbw and busbw (GB/s = 1e9), wrong elements. N/A where there is no
// figure. Records of other families, and those without figures, are left out; empty when none remains.
std::string collective_table(std::span<const Record* const> records);

}  // namespace assay::report
