// Matrix products by oneDNN: f32, bf16, u8 x s8.
#pragma once

#include "workloads/ops/matmul.h"

namespace assay::ops {

Made<Matmul> make_dnnl_matmul(const MatmulDesc& desc);
// "oneDNN 3.2.0".
std::string dnnl_version_text();

}  // namespace assay::ops
