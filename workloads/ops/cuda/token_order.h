// The tokens of a batch in the order of their ids, tokens of one id in their own order: what makes sums over the tokens
// of an id the same every time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace assay::ops {

// Bytes of scratch that enqueue_token_order() needs, a multiple of 16.
std::size_t token_order_bytes(std::int64_t tokens);
// Sorts; ids are in [0, bound), less than 2^31 of them. Returns where the order will lie in `scratch`: (tokens) i32.
const std::int32_t* enqueue_token_order(const std::int32_t* ids, std::int64_t tokens, std::int64_t bound, void* scratch,
                                        cudaStream_t stream);

}  // namespace assay::ops
