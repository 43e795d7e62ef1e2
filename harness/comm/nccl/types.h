// NCCL's types and operations for our element types and reductions.
#pragma once

#include "harness/comm/communicator.h"

#include <nccl.h>

namespace assay::nccl {

// Throws Error for a type that this version of NCCL lacks (fp8 came with 2.24).
ncclDataType_t datatype_of(DType dtype);
ncclRedOp_t operation_of(ReduceOp op);

}  // namespace assay::nccl
