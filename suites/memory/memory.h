// The memory suite: bandwidth of the five STREAM-like loops and of reading, and latency of dependent loads.
#pragma once

#include "harness/plan/family.h"

namespace assay {

// Counts as STREAM does: per pass, read and write N, copy and scale 2N, add and triad 3N bytes, N being the bytes of
// one array.
Family memory_family();

}  // namespace assay
