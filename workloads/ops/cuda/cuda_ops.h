// The factory of the CUDA backend, specialised for every op: each source makes one op or one pair of ops.
#pragma once

#include "workloads/ops/backend.h"

namespace assay::ops {

template <typename Op>
Made<Op> make_cuda(Device& device, const typename Op::Desc& desc);

}  // namespace assay::ops
