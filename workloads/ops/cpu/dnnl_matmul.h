// Matrix products by oneDNN: f32, bf16, u8 x s8.
#pragma once

#include "workloads/ops/matmul.h"

namespace assay::ops {

// Every form and extra of a product. The way is chosen by fixed rules, so that a machine always computes alike.
Made<Matmul> make_dnnl_matmul(const MatmulDesc& desc);

// True for products that dnnl_weight_gradient.cpp has faster ways for: a lies transposed, b plainly.
bool is_weight_gradient(const MatmulDesc& desc);
Made<Matmul> make_dnnl_weight_gradient(const MatmulDesc& desc);

}  // namespace assay::ops
