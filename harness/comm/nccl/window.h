// NCCL's windows: memory that all ranks register together. They came with NCCL 2.27, so they are looked up in the
// loaded library, which may be older than the one of the build.
#pragma once

#include "harness/device/device.h"

#include <nccl.h>

#include <cstddef>
#include <optional>

namespace assay::nccl {

// The address of a function of the loaded NCCL; null if this version does not export it.
void* find_symbol(const char* name);

// The handle is an ncclWindow_t, which older headers do not declare.
struct Windows {
  ncclResult_t (*add)(ncclComm_t, void* data, std::size_t bytes, void** window, int flags);
  ncclResult_t (*remove)(ncclComm_t, void* window);
};
// Nothing before NCCL 2.27.
std::optional<Windows> find_windows();

// Allocates a symmetric window on every rank of `comm`. Throws Error if NCCL has no windows, makes none of these GPUs,
// or there is not enough memory.
Buffer allocate_window(ncclComm_t comm, std::size_t bytes);

}  // namespace assay::nccl
