// Turns oneDNN's errors into the reason why there is no op.
#pragma once

#include "harness/core/error.h"
#include "workloads/ops/cpu/dnnl_isa.h"
#include "workloads/ops/op.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace assay::ops {

// The op that `make` builds, or the reason if oneDNN has no kernel for `what`, or only a naive one.
template <typename Interface, typename Make>
Made<Interface> made_by_dnnl(const std::string& what, const Make& make) {
  try {
    std::unique_ptr<Interface> op = make();
    if (is_reference_kernel(op->implementation()))
      return Made<Interface>::no(
          fmt::format("oneDNN has only a reference kernel ({}) for {} on this CPU", op->implementation(), what));
    return op;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_invalid_arguments)
      throw Error(fmt::format("oneDNN cannot build {}: {}", what, error.what()));
    return Made<Interface>::no(fmt::format("oneDNN has no kernel for {} on this CPU", what));
  }
}

}  // namespace assay::ops
