// Memory kernels for all other processors: the compiler's vectors, plain stores.
#include "suites/memory/kernel_loops.h"

namespace assay::memory {

namespace {

struct Vector {
  typedef double Register __attribute__((vector_size(16)));
  static constexpr std::size_t width = 2;
  static constexpr bool streams = false;
  static Register set(double value) { return Register{value, value}; }
  static Register load(const double* from) { return *reinterpret_cast<const Register*>(from); }
  static void store(double* to, Register value) { *reinterpret_cast<Register*>(to) = value; }
  static Register add(Register a, Register b) { return a + b; }
  static Register multiply(Register a, Register b) { return a * b; }
};

constexpr KernelSet set = make_set<Vector>("generic");

}  // namespace

const KernelSet* baseline_kernels() { return &set; }
const KernelSet* avx2_kernels() { return nullptr; }
const KernelSet* avx512_kernels() { return nullptr; }

}  // namespace assay::memory
