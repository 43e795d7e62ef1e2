// A memory case on a GPU: the same loops, counts and checks as on a CPU, with kernels of the CUDA module.
#pragma once

#include "harness/plan/case.h"

#include <memory>

namespace assay::memory {

std::unique_ptr<Case> make_cuda_case(const Params& params);

}  // namespace assay::memory
