// Kernels compiled from one source for each instruction set, and the choice among them at run time.
//
// assay_kernels() (cmake/AssayTargets.cmake) compiles a kernel's source once per instruction set, with ASSAY_ISA set to
// its name. Everything in such a source is in an unnamed namespace and calls no inline function of a header: the linker
// would keep one copy, perhaps compiled for instructions this CPU lacks. vector/vector.h has the vectors. The source
// exports a table of functions, and kernels<RowKernels>() returns the one to call:
//   template <>
//   const assay::ops::RowKernels
//       assay::cpu::KernelsFor<assay::ops::RowKernels, assay::cpu::Isa::ASSAY_ISA>::table = assay::ops::row_kernels;
#pragma once

#include <initializer_list>
#include <string_view>

namespace assay::cpu {

enum class Isa { generic, avx2, avx512, avx512_bf16 };  // weakest first
std::string_view name_of(Isa isa);

// Whether this build has kernels for `isa` and the CPU can run them.
bool supports(Isa isa);
// The strongest instruction set that is supported, or the one that the environment's ASSAY_ISA names, so that a weaker
// processor's kernels can run here. Throws UsageError if ASSAY_ISA is not supported.
Isa best_isa();

// The kernel's source defines `table`, once per object.
template <typename Table, Isa isa>
struct KernelsFor {
  static const Table table;
};

template <Isa... isas>
struct IsaList {
  static constexpr std::initializer_list<Isa> values = {isas...};
  // The table for one ISA of the list.
  template <typename Table>
  static const Table& choose(Isa isa) {
    const Table* table = nullptr;
    ((isas == isa ? void(table = &KernelsFor<Table, isas>::table) : void()), ...);
    return *table;
  }
};
using CompiledIsas = IsaList<ASSAY_COMPILED_ISAS>;

// The table of best_isa().
template <typename Table>
const Table& kernels() {
  return CompiledIsas::choose<Table>(best_isa());
}

}  // namespace assay::cpu
