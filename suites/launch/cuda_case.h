// The launch cases on a GPU.
#pragma once

#include "harness/plan/case.h"

#include <memory>

namespace assay::launch {

enum class GpuOp { kernel, kernel_wait, graph, graph_wait, event, copy_h2d, copy_d2h };
constexpr auto words(GpuOp) {
  return std::to_array<std::string_view>(
      {"kernel", "kernel_wait", "graph", "graph_wait", "event", "copy_h2d", "copy_d2h"});
}

std::unique_ptr<Case> make_cuda_case(const Params& params);

}  // namespace assay::launch
