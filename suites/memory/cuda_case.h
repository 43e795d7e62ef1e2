// A memory case on a GPU: the same loops, counts and checks as on a CPU, by the module's kernels.
#pragma once

#include "harness/plan/case.h"

#include <memory>

namespace assay::memory {

std::unique_ptr<Case> make_cuda_case(const Params& params);

}  // namespace assay::memory
