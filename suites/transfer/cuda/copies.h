// The transfer suite's kernels, enqueued by copies.cpp (host code, since nvcc cannot compile text formatting).
#pragma once

#include "suites/transfer/pattern.h"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace assay::transfer {

void enqueue_copy(void* to, const void* from, std::size_t bytes, unsigned max_blocks, cudaStream_t stream);
void enqueue_fill(void* data, std::size_t bytes, cudaStream_t stream);
void enqueue_compare(const void* data, std::size_t bytes, Wrong* wrong, cudaStream_t stream);

}  // namespace assay::transfer
