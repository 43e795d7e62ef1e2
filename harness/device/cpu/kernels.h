// Kernels that are compiled once an instruction set from one source, and the choice among them at run time.
//
// A kernel's source is named in assay_kernels() (cmake/AssayTargets.cmake), which compiles it for each instruction set
// with ASSAY_ISA set to its name. Everything in such a source lies in an unnamed namespace and calls nothing that a
// header could emit for other objects to link (the linker would keep one copy, compiled for a CPU that may not be
// there); vectors and what they can do are in vector/vector.h. What leaves a source is a table of functions:
//   template <> const RowKernels cpu::KernelsFor<RowKernels, cpu::Isa::ASSAY_ISA>::table = ops::row_kernels;
// and kernels<RowKernels>() is the table to call.
#pragma once

#include <initializer_list>
#include <string_view>

namespace assay::cpu {

enum class Isa { generic, avx2, avx512, avx512_bf16 };  // weakest first
std::string_view name_of(Isa isa);

// True when this build has kernels for `isa` and the CPU runs what they are compiled with.
bool supports(Isa isa);
// The strongest of those, or what ASSAY_ISA in the environment names, so that a weaker processor's kernels can be run
// on this one. Throws UsageError where it names none that is supported.
Isa best_isa();

// `table` is defined by the kernel's source, in each of its objects.
template <typename Table, Isa isa>
struct KernelsFor {
  static const Table table;
};

template <Isa... isas>
struct IsaList {
  static constexpr std::initializer_list<Isa> values = {isas...};
  // The table for one of the list.
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
