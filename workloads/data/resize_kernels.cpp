#include "workloads/data/resize_kernels.h"

namespace assay::data {

const ResizeKernels& best_resize_kernels() {
  for (const char* isa : {"avx512", "avx2"})
    if (const ResizeKernels* kernels = resize_kernels(isa)) return *kernels;
  return detail::generic_kernels;
}

}  // namespace assay::data
