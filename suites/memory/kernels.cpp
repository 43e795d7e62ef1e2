// Choice of the memory kernels at run time.
#include "suites/memory/kernels.h"

#include "harness/device/cpu/cpuid.h"

namespace assay::memory {

const KernelSet& best_kernels() {
  const cpu::InstructionSets& has = cpu::instruction_sets();
  if (has.avx512f && avx512_kernels()) return *avx512_kernels();
  if (has.avx2 && avx2_kernels()) return *avx2_kernels();
  return *baseline_kernels();
}

}  // namespace assay::memory
