// The instruction set that a oneDNN kernel truly runs.
#pragma once

#include "harness/core/dtype.h"

#include <string>
#include <string_view>

namespace assay::ops {

// From the primitive's own name ("brg:avx512_core_bf16") where it says so, else from what the library's JIT GEMM
// selects for `operand` on a CPU with `effective_isa` (dnnl::cpu_isa bits). bf16 without bf16 instructions is
// converted to f32 on the way and says "avx512_core_emulated_bf16".
std::string dnnl_kernel_isa(std::string_view implementation, DType operand, unsigned effective_isa);

// Naive kernels, which say nothing about the machine.
bool is_reference_kernel(std::string_view implementation);

// Without VNNI or AMX, u8 x s8 goes through vpmaddubsw, whose 16-bit pair sums saturate.
bool saturates_int8(std::string_view isa);

}  // namespace assay::ops
