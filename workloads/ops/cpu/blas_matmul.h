// Matrix products in f64 by a BLAS.
#pragma once

#include "workloads/ops/cpu/blas_library.h"
#include "workloads/ops/matmul.h"

namespace assay::ops {

Made<Matmul> make_blas_matmul(const MatmulDesc& desc, const BlasLibrary& library);

}  // namespace assay::ops
