// Searches cuBLASLt's algorithms for a product, on the device, when an op is made.
#pragma once

#include "workloads/ops/cuda/blaslt.h"

namespace assay::ops {

struct SearchResult {
  bool runs = true;  // false: the library rejected every algorithm of its heuristics
  std::string how;   // "fastest of 12 by time", "the only one", "by the heuristics: why", or why none runs
};

// Chooses the fastest of the plan's algorithms, timed on random operands, and remembers it for equal products: in this
// process, and for later ones as algorithms_of() does. Keeps the heuristics' choice if there is no memory for operands.
// Batches are not supported. It synchronises, so no op's stream may be capturing.
SearchResult choose_fastest(BlasPlan& plan, Device& device);

}  // namespace assay::ops
