// A backend whose ops only have sizes: plans of memory on machines that could not run the model.
#pragma once

#include "workloads/ops/backend.h"

#include <memory>

namespace assay::nn {

// Every op in every dtype. Packed weights take what they hold; scratch is not known and counts as none. Ops cannot run.
std::shared_ptr<ops::Backend> make_planning_backend();

}  // namespace assay::nn
