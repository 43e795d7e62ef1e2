// Places the tensors of a program in the arena.
#pragma once

#include "workloads/nn/program.h"

#include <cstddef>

namespace assay::nn {

// Alignment of arrays in every region: more than a cache line, and as much as cuBLASLt requires of its workspace.
inline constexpr std::size_t lasting_alignment = 256;
inline std::size_t aligned(std::size_t bytes) {
  return (bytes + lasting_alignment - 1) / lasting_alignment * lasting_alignment;
}

// Sets the offsets of tensors and of the program's windows from their lifetimes, and the program's arena terms.
void place_in_arena(Program& program);

}  // namespace assay::nn
