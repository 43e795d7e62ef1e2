// A backend whose ops only have sizes, for planning memory on machines that could not run the model.
#pragma once

#include "workloads/ops/backend.h"

#include <memory>

namespace assay::nn {

// Every op in every dtype. Packed weights take the size of their content; scratch is unknown and counts as 0. Ops
// cannot run.
std::shared_ptr<ops::Backend> make_planning_backend();

}  // namespace assay::nn
