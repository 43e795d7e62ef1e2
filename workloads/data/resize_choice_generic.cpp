// Processors without dedicated kernels use the portable ones.
#include "workloads/data/resize_kernels.h"

namespace assay::data {

const ResizeKernels* resize_kernels(std::string_view isa) {
  return isa == "generic" ? &detail::generic_kernels : nullptr;
}

}  // namespace assay::data
