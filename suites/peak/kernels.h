// Register-only loops that only multiply and add: one set per instruction set.
#pragma once

#include "harness/device/cpu/cpuid.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay::peak {

inline constexpr std::size_t register_bytes = 1024;  // size of the largest register, an AMX tile

// Operands of a pass, which multiplies x by y0 and by y1 in turn. In the kernel's element type.
struct Operands {
  alignas(64) std::array<std::byte, register_bytes> x{};
  alignas(64) std::array<std::byte, register_bytes> y0{};
  alignas(64) std::array<std::byte, register_bytes> y1{};
};

// Element types of operands and sums.
enum class Element { f64, f32, bf16, int8 };

struct Kernel {
  std::string_view dtype;  // f64, f32, bf16, int8
  std::string_view isa;    // as in keys: sse, avx2, avx512, avx512_bf16, avx512_vnni, avx_vnni, amx
  Element element;
  int accumulators;    // independent sums; accumulator i starts at i in every lane
  int lanes;           // sums in one accumulator
  int products;        // added to each sum per instruction
  int rows;            // lanes = rows x columns: 1 for vectors, 16 for tiles
  std::int64_t pairs;  // per pass; few enough for exact sums
  // Adds x * y0 and x * y1 `pairs` times to every accumulator and writes them all to `sums` (int32 for int8, f64 for
  // f64, else f32).
  void (*run)(const Operands&, std::int64_t pairs, void* sums);
  bool (*supported)(const cpu::InstructionSets&);

  // An FMA is 2.
  double flops_per_pass() const { return 4.0 * static_cast<double>(pairs) * accumulators * lanes * products; }
  std::size_t sum_bytes() const {
    return static_cast<std::size_t>(accumulators) * static_cast<std::size_t>(lanes) * (element == Element::f64 ? 8 : 4);
  }
};

// All loops of this build; for each dtype from the narrowest instruction set to the widest.
std::span<const Kernel> kernels();
// The loop for a dtype and instruction set; null if there is none.
const Kernel* find_kernel(std::string_view dtype, std::string_view isa);
// The loops of a dtype that this processor can run.
std::vector<const Kernel*> supported_kernels(std::string_view dtype);

// Loops by file; kernels() has no entries for files that a build lacks.
void sse_f64(const Operands&, std::int64_t pairs, void* sums);
void sse_f32(const Operands&, std::int64_t pairs, void* sums);
void avx2_f64(const Operands&, std::int64_t pairs, void* sums);
void avx2_f32(const Operands&, std::int64_t pairs, void* sums);
void avx512_f64(const Operands&, std::int64_t pairs, void* sums);
void avx512_f32(const Operands&, std::int64_t pairs, void* sums);
void avx512_bf16(const Operands&, std::int64_t pairs, void* sums);
void avx512_vnni(const Operands&, std::int64_t pairs, void* sums);
void avx_vnni(const Operands&, std::int64_t pairs, void* sums);
void amx_bf16(const Operands&, std::int64_t pairs, void* sums);
void amx_int8(const Operands&, std::int64_t pairs, void* sums);

}  // namespace assay::peak
