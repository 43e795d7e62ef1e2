// Parameters of memory cases, common to all devices.
#pragma once

#include "harness/core/error.h"
#include "harness/plan/params.h"
#include "suites/memory/arrays.h"

namespace assay::memory {

inline const OpInfo& info_of(const Params& params) {
  for (const OpInfo& info : ops)
    if (info.name == params.text("op")) return info;
  throw Error("memory: unknown op " + params.text("op"));
}

// The requested bytes, rounded down to whole cache lines.
inline std::size_t elements_of(const Params& params) {
  return static_cast<std::size_t>(params.integer("bytes")) / line_bytes * doubles_per_line;
}

}  // namespace assay::memory
