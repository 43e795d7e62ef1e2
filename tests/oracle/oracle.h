// The oracle's ops as a backend, which tests give to models and compare with those of devices.
#pragma once

#include "workloads/ops/backend.h"

#include <memory>

namespace assay::ops {

// Naive loops that accumulate in double (64-bit integers for int8). Every op in f64, f32 and bf16.
std::shared_ptr<Backend> make_reference_backend();

}  // namespace assay::ops
