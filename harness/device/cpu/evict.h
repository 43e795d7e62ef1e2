// Eviction of single cache lines.
#pragma once

#include "harness/device/device.h"

namespace assay::cpu {

// Writes every line of `range` back to memory and drops it from the caches of all CPUs. Returns when that is done.
// About 5 ns per line on one thread (Granite Rapids in a virtual machine).
void evict_lines(MemoryRange range);

}  // namespace assay::cpu
