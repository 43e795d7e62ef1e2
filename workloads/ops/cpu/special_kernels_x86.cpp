// Kernels that some x86 processors have. VDPBF16PS has twice the throughput of an f32 FMA on AMD (Zen 4 and later), but
// half on Intel (measured on Emerald Rapids: 210 against 420 GFLOP/s), so Intel computes in f32.
#include "harness/device/cpu/cpuid.h"
#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/special_kernels.h"

namespace assay::ops {

extern const AttentionKernels::Type attention_pairs;
extern const TileKernels amx_tiles;

const AttentionKernels::Type* attention_pair_kernels() {
  const bool pays = cpu::processor().vendor == "AMD";
  return pays && cpu::best_isa() == cpu::Isa::avx512_bf16 ? &attention_pairs : nullptr;
}

const TileKernels* tile_kernels() {
  const bool supported = cpu::instruction_sets().amx_bf16 && cpu::best_isa() == cpu::Isa::avx512_bf16;
  return supported ? &amx_tiles : nullptr;
}

}  // namespace assay::ops
