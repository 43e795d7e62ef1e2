// Lookups in the table of loops.
#include "suites/peak/kernels.h"

namespace assay::peak {

const Kernel* find_kernel(std::string_view dtype, std::string_view isa) {
  for (const Kernel& kernel : kernels())
    if (kernel.dtype == dtype && kernel.isa == isa) return &kernel;
  return nullptr;
}

std::vector<const Kernel*> supported_kernels(std::string_view dtype) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : kernels())
    if (kernel.dtype == dtype && kernel.supported(cpu::instruction_sets())) found.push_back(&kernel);
  return found;
}

}  // namespace assay::peak
