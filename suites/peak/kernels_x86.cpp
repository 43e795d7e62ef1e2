// The loops for x86-64 processors.
#include "suites/peak/kernels.h"

namespace assay::peak {

namespace {

using cpu::InstructionSets;

constexpr std::int64_t vector_pairs = std::int64_t{1} << 16;
constexpr std::int64_t tile_pairs = std::int64_t{1} << 12;

bool baseline(const InstructionSets&) { return true; }
bool has_avx2(const InstructionSets& s) { return s.avx2 && s.fma; }
bool has_avx512(const InstructionSets& s) { return s.avx512f; }
bool has_avx512_bf16(const InstructionSets& s) { return s.avx512f && s.avx512_bf16; }
bool has_avx512_vnni(const InstructionSets& s) { return s.avx512f && s.avx512_vnni; }
bool has_avx_vnni(const InstructionSets& s) { return s.avx2 && s.avx_vnni; }
bool has_amx_bf16(const InstructionSets& s) { return s.amx_tile && s.amx_bf16; }
bool has_amx_int8(const InstructionSets& s) { return s.amx_tile && s.amx_int8; }

constexpr std::array table{
    Kernel{"f64", "sse", Element::f64, 8, 2, 1, 1, vector_pairs, sse_f64, baseline},
    Kernel{"f64", "avx2", Element::f64, 12, 4, 1, 1, vector_pairs, avx2_f64, has_avx2},
    Kernel{"f64", "avx512", Element::f64, 16, 8, 1, 1, vector_pairs, avx512_f64, has_avx512},
    Kernel{"f32", "sse", Element::f32, 8, 4, 1, 1, vector_pairs, sse_f32, baseline},
    Kernel{"f32", "avx2", Element::f32, 12, 8, 1, 1, vector_pairs, avx2_f32, has_avx2},
    Kernel{"f32", "avx512", Element::f32, 16, 16, 1, 1, vector_pairs, avx512_f32, has_avx512},
    Kernel{"bf16", "avx512_bf16", Element::bf16, 24, 16, 2, 1, vector_pairs, avx512_bf16, has_avx512_bf16},
    Kernel{"bf16", "amx", Element::bf16, 5, 256, 32, 16, tile_pairs, amx_bf16, has_amx_bf16},
    Kernel{"int8", "avx_vnni", Element::int8, 12, 8, 4, 1, vector_pairs, avx_vnni, has_avx_vnni},
    Kernel{"int8", "avx512_vnni", Element::int8, 16, 16, 4, 1, vector_pairs, avx512_vnni, has_avx512_vnni},
    Kernel{"int8", "amx", Element::int8, 5, 256, 64, 16, tile_pairs, amx_int8, has_amx_int8},
};

}  // namespace

std::span<const Kernel> kernels() { return table; }

}  // namespace assay::peak
