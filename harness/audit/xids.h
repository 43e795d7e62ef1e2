// XID errors: numbers by which NVIDIA's driver reports a GPU's errors in the kernel's log.
#pragma once

#include "harness/machine/finding.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::audit {

struct Xid {
  std::int64_t number = 0;
  Severity severity = Severity::warning;  // fault: needs a reset or a repair; info: a program's own error
  std::string_view meaning, action;
};

// Absent for numbers that the table lacks.
std::optional<Xid> find_xid(std::int64_t number);

}  // namespace assay::audit
