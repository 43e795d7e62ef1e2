// The instruction set that a oneDNN kernel actually runs.
#pragma once

#include "harness/core/dtype.h"

#include <string>
#include <string_view>

namespace assay::ops {

// From the primitive's name ("brg:avx512_core_bf16") if that contains it, else what the library's JIT GEMM selects for
// `operand` on a CPU with `effective_isa` (dnnl::cpu_isa bits). bf16 without bf16 instructions is converted to f32 and
// reported as "avx512_core_emulated_bf16".
std::string dnnl_kernel_isa(std::string_view implementation, DType operand, unsigned effective_isa);

// Whether this is one of oneDNN's naive kernels, whose speed is no measure of the machine.
bool is_reference_kernel(std::string_view implementation);

// Without VNNI or AMX, u8 x s8 goes through vpmaddubsw, whose 16-bit pair sums saturate.
bool saturates_int8(std::string_view isa);

}  // namespace assay::ops
