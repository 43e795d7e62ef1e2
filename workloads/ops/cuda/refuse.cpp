// The throwing side of refuse.h.
#include "workloads/ops/cuda/refuse.h"

#include "harness/core/error.h"

namespace assay::ops {

void refuse_type(const char* what, DType dtype) { throw Error(fmt::format("no {} for {}", what, name_of(dtype))); }

}  // namespace assay::ops
