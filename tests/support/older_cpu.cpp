// older_cpu ISA PROGRAM ARGUMENT...: runs a program as on a CPU whose best instruction set is ISA: both our kernels and
// oneDNN use nothing newer. Exits with 77, which ctest counts as skipped, if this CPU lacks ISA.
#include "harness/device/cpu/kernels.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace {

using assay::cpu::CompiledIsas;
using assay::cpu::Isa;
using assay::cpu::name_of;

const char* onednn_name_of(Isa isa) {
  switch (isa) {
    case Isa::generic: return "SSE41";
    case Isa::avx2: return "AVX2";
    case Isa::avx512: return "AVX512_CORE";
    case Isa::avx512_bf16: return "AVX512_CORE_BF16";
  }
  return "DEFAULT";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc > 2 ? argv[1] : "";
  for (const Isa isa : CompiledIsas::values) {
    if (name_of(isa) != wanted) continue;
    if (!supports(isa)) {
      fmt::print("skipped: this CPU has no {}\n", wanted);
      return 77;
    }
    setenv("ASSAY_ISA", argv[1], 1);
    setenv("ONEDNN_MAX_CPU_ISA", onednn_name_of(isa), 1);
    execv(argv[2], argv + 2);
    std::perror(argv[2]);
    return 4;
  }
  fmt::print(stderr, "usage: older_cpu ISA PROGRAM ARGUMENT..., where ISA is one that this build has kernels for\n");
  return 2;
}
