// Finds the instruction set of a oneDNN kernel from its name.
#include "workloads/ops/cpu/dnnl_isa.h"

#include <oneapi/dnnl/dnnl.hpp>

#include <array>

namespace assay::ops {

namespace {

using dnnl::cpu_isa;

struct Level {
  cpu_isa isa;
  const char* name;
};

// Best first, in the order in which the JIT GEMM of each operand type checks for them.
constexpr std::array f32_levels{Level{cpu_isa::avx512_core, "avx512_core"}, Level{cpu_isa::avx2, "avx2"},
                                Level{cpu_isa::avx, "avx"}, Level{cpu_isa::sse41, "sse41"}};
constexpr std::array bf16_levels{Level{cpu_isa::avx512_core_amx, "avx512_core_amx"},
                                 Level{cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
                                 Level{cpu_isa::avx512_core, "avx512_core_emulated_bf16"}};
constexpr std::array int8_levels{Level{cpu_isa::avx512_core_amx, "avx512_core_amx"},
                                 Level{cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
                                 Level{cpu_isa::avx512_core, "avx512_core"},
                                 Level{cpu_isa::avx2_vnni, "avx2_vnni"},
                                 Level{cpu_isa::avx2, "avx2"},
                                 Level{cpu_isa::avx, "avx"},
                                 Level{cpu_isa::sse41, "sse41"}};

template <typename Levels>
std::string best_of(const Levels& levels, unsigned effective) {
  for (const Level& level : levels) {
    const auto bits = static_cast<unsigned>(level.isa);
    if ((effective & bits) == bits) return level.name;
  }
  return "generic";
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

bool is_reference_kernel(std::string_view implementation) {
  return contains(implementation, "ref") || contains(implementation, "simple") || contains(implementation, "naive");
}

std::string dnnl_kernel_isa(std::string_view implementation, DType operand, unsigned effective_isa) {
  const std::size_t colon = implementation.rfind(':');
  const std::string_view last = colon == std::string_view::npos ? implementation : implementation.substr(colon + 1);
  if (last.starts_with("avx") || last.starts_with("sse") || last.starts_with("sve") || last.starts_with("asimd")) {
    const bool emulated = operand == DType::bf16 && last.starts_with("avx512_core") && !contains(last, "bf16") &&
                          !contains(last, "amx") && !contains(last, "fp16");
    return emulated ? std::string(last) + "_emulated_bf16" : std::string(last);
  }
  if (operand == DType::bf16) return best_of(bf16_levels, effective_isa);
  if (operand == DType::u8 || operand == DType::s8) return best_of(int8_levels, effective_isa);
  return best_of(f32_levels, effective_isa);
}

bool saturates_int8(std::string_view isa) {
  return !contains(isa, "vnni") && !contains(isa, "amx") && !contains(isa, "bf16") && !contains(isa, "fp16");
}

}  // namespace assay::ops
