// Which of the compiled instruction sets this CPU can run.
#include "harness/device/cpu/kernels.h"

#include "harness/core/error.h"
#include "harness/device/cpu/cpuid.h"

#include <algorithm>
#include <cstdlib>
#include <string>

namespace assay::cpu {

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::generic: return "generic";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_bf16: return "avx512_bf16";
  }
  return {};
}

bool supports(Isa isa) {
  if (std::ranges::find(CompiledIsas::values, isa) == CompiledIsas::values.end()) return false;
  const InstructionSets& has = instruction_sets();
  switch (isa) {
    case Isa::generic: return true;
    case Isa::avx2: return has.avx2 && has.fma;
    case Isa::avx512: return has.avx512f && has.avx512bw && has.avx512dq && has.avx512vl && has.fma;
    case Isa::avx512_bf16: return has.avx512_bf16 && supports(Isa::avx512);
  }
  return false;
}

namespace {

Isa choose_isa() {
  Isa best = Isa::generic;
  std::string supported;
  const char* wanted = std::getenv("ASSAY_ISA");
  for (const Isa isa : CompiledIsas::values) {
    if (!supports(isa)) continue;
    if (wanted && name_of(isa) == wanted) return isa;
    best = std::max(best, isa);
    supported += fmt::format("{}{}", supported.empty() ? "" : ", ", name_of(isa));
  }
  if (wanted) throw UsageError(fmt::format("ASSAY_ISA is '{}'; this machine has {}", wanted, supported));
  return best;
}

}  // namespace

Isa best_isa() {
  static const Isa best = choose_isa();
  return best;
}

}  // namespace assay::cpu
