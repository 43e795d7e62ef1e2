// A backend whose ops only have sizes, for planning memory on machines that could not run the model.
#pragma once

#include "harness/device/device.h"
#include "workloads/ops/backend.h"

#include <memory>

namespace assay::nn {

// Every op in every dtype, with the sizes of the `cpu` or `cuda` backend: this machine's CPU packs weights, which then
// take the size of their content, or of their transform where Winograd's method computes a convolution (f32 products
// only if it has AVX-512); a GPU reads them as stored. Scratch is unknown and counts as 0. Ops cannot run.
std::shared_ptr<ops::Backend> make_planning_backend(DeviceKind device);

}  // namespace assay::nn
