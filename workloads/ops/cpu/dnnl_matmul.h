// Matrix products by oneDNN: f32, bf16, u8 x s8.
#pragma once

#include "workloads/ops/matmul.h"

namespace assay::ops {

// Supports every form, epilogue and option. Fixed rules choose the primitive, so a machine always computes the same
// way.
Made<Matmul> make_dnnl_matmul(const MatmulDesc& desc);

// Whether dnnl_weight_gradient.cpp has a faster way for this product: a is stored transposed, b is not.
bool is_weight_gradient(const MatmulDesc& desc);
Made<Matmul> make_dnnl_weight_gradient(const MatmulDesc& desc);

}  // namespace assay::ops
