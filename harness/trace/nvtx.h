// A thin wrapper of NVTX, so that a build without its headers links nvtx_none.cpp instead.
#pragma once

#include "harness/trace/trace.h"

namespace assay::trace::nvtx {

// Whether a tool is attached; the first call creates the domain `assay` and names its categories.
bool attached();
// Push and pop a range on the calling thread; call them only if a tool is attached.
void push(Category category, const char* name, std::int64_t payload);
void pop() noexcept;

}  // namespace assay::trace::nvtx
