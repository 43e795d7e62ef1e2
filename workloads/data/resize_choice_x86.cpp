// Selects the kernels that an x86 processor can run.
#include "harness/device/cpu/cpuid.h"
#include "workloads/data/resize_kernels.h"

namespace assay::data {

const ResizeKernels* resize_kernels(std::string_view isa) {
  const cpu::InstructionSets& has = cpu::instruction_sets();
  if (isa == "avx512" && has.avx512f && has.avx512bw && has.avx512dq && has.avx512vl) return &detail::avx512_kernels;
  if (isa == "avx2" && has.avx2 && has.fma) return &detail::avx2_kernels;
  return isa == "generic" ? &detail::generic_kernels : nullptr;
}

}  // namespace assay::data
