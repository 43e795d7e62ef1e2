// The throwing check macro of NCCL.
#pragma once

#include <nccl.h>

namespace assay::nccl {

// Throws Error with the call, NCCL's message for the result, its last warning and the location.
[[noreturn]] void fail(ncclResult_t result, const char* call, const char* file, int line);

#define ASSAY_NCCL(call)                                                                    \
  do {                                                                                      \
    if (const ncclResult_t assay_result = (call); assay_result != ncclSuccess) [[unlikely]] \
      ::assay::nccl::fail(assay_result, #call, __FILE__, __LINE__);                         \
  } while (false)

}  // namespace assay::nccl
