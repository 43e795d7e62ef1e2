// Reductions of bf16 arrays, for libraries without them. Uses this CPU's widest vectors.
#pragma once

#include "harness/comm/communicator.h"

#include <cstddef>

namespace assay {

// in_out[i] = in[i] op in_out[i], computed in f32 and rounded to nearest even. Arrays do not overlap.
void reduce_bf16(ReduceOp op, const bf16* in, bf16* in_out, std::size_t count);

}  // namespace assay
