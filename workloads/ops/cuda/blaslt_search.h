// The search among cuBLASLt's algorithms for a product, on the device, when an op is made.
#pragma once

#include "workloads/ops/cuda/blaslt.h"

namespace assay::ops {

struct SearchResult {
  bool runs = true;  // false: the library refused every algorithm that its heuristics offer
  std::string how;   // "fastest of 12 by time", "the only one", "by the heuristics: why", or why none runs
};

// Chooses the fastest of the plan's algorithms, by time with random operands of its own, and remembers it for equal
// products: in this process, and for later ones in the folder that ASSAY_CACHE names, for one library version and kind
// of device. Where memory does not suffice for operands the heuristics' choice stays. The product is of one item, not
// of a batch. Not while the stream of another op is captured: it synchronises.
SearchResult choose_fastest(BlasPlan& plan, Device& device);

}  // namespace assay::ops
