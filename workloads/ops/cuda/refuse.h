// Errors for sources compiled by nvcc, which cannot format text (its front end fails on fmt's compile-time checks).
#pragma once

#include "harness/core/dtype.h"

namespace assay::ops {

// Throws Error: "no WHAT for DTYPE".
[[noreturn]] void refuse_type(const char* what, DType dtype);

}  // namespace assay::ops
