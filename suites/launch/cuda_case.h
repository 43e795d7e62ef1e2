// Launch cases of a GPU.
#pragma once

#include "harness/plan/case.h"

#include <memory>
#include <string>
#include <vector>

namespace assay::launch {

// What a GPU launches, in the order of the family's values.
const std::vector<std::string>& cuda_ops();
std::unique_ptr<Case> make_cuda_case(const Params& params);

}  // namespace assay::launch
