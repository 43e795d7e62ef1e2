// The loops that memory cases time: one set per instruction set, each in a file with its own compiler flags.
#pragma once

#include "suites/memory/values.h"

#include <cstddef>

namespace assay::memory {

// One pass over `n` doubles, a multiple of 8, all arrays 64-byte aligned; returns read's sum, else 0.
//   read: sum of x           write: out = written   copy:  out = x
//   scale: out = factor x    add: out = x + y       triad: out = x + factor y
// Ends with a fence after non-temporal stores.
using Kernel = double (*)(double* out, const double* x, const double* y, std::size_t n);

struct KernelSet {
  const char* isa;
  Kernel plain[6];        // indexed by Op; latency has no kernel
  Kernel nontemporal[6];  // null for read, and if the processor has no such stores
};

// Null if this build lacks the set. Call them only on a processor that has the instructions.
const KernelSet* baseline_kernels();
const KernelSet* avx2_kernels();
const KernelSet* avx512_kernels();

// The widest set that this processor and its operating system allow.
const KernelSet& best_kernels();

}  // namespace assay::memory
