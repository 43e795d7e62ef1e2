// The search among cuBLASLt's algorithms for a product, on the device, when an op is made.
#pragma once

#include "workloads/ops/cuda/blaslt.h"

namespace assay::ops {

// Chooses the fastest of the plan's algorithms, by time with random operands of its own, and remembers it for equal
// products: in this process, and for later ones in the folder that ASSAY_CACHE names, for one library version and kind
// of device. Where memory does not suffice for operands the heuristics' choice stays. Returns how the choice was made:
// "fastest of 12 by time", then or in an earlier search, or "by the heuristics: ...". The product is of one item, not
// of a batch.
std::string choose_fastest(BlasPlan& plan, Device& device);

}  // namespace assay::ops
