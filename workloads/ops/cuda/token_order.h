// Sorts a batch's tokens by id, stably, so that sums over the tokens of an id are reproducible.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace assay::ops {

// Bytes of scratch for enqueue_token_order(), a multiple of 16.
std::size_t token_order_bytes(std::int64_t tokens);
// Enqueues the sort of fewer than 2^31 ids in [0, bound). Returns where in `scratch` the order will be: (tokens) i32.
const std::int32_t* enqueue_token_order(const std::int32_t* ids, std::int64_t tokens, std::int64_t bound, void* scratch,
                                        cudaStream_t stream);

}  // namespace assay::ops
