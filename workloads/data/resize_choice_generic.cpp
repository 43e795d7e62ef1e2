// Processors without kernels of their own run the portable ones.
#include "workloads/data/resize_kernels.h"

namespace assay::data {

const ResizeKernels* resize_kernels(std::string_view isa) {
  return isa == "generic" ? &detail::generic_kernels : nullptr;
}

}  // namespace assay::data
