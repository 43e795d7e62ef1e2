// The throwing check macro of cuDNN.
#pragma once

#include <cudnn.h>

namespace assay::ops::cudnn {

// Throws Error with the call, its location, the status and cuDNN's last error message.
[[noreturn]] void fail(cudnnStatus_t status, const char* call, const char* file, int line);

#define ASSAY_CUDNN(call)                                                                             \
  do {                                                                                                \
    if (const cudnnStatus_t assay_status = (call); assay_status != CUDNN_STATUS_SUCCESS) [[unlikely]] \
      ::assay::ops::cudnn::fail(assay_status, #call, __FILE__, __LINE__);                             \
  } while (false)

}  // namespace assay::ops::cudnn
