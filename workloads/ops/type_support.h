// Which element types a device multiplies at all.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <optional>
#include <string>

namespace assay::ops {

// Why the device multiplies nothing of this type, in a sentence for people: "this CPU has no bf16 arithmetic". Absent
// if it does. Asks the backend for a small product, so that all cases give the same reason. Products of f64, f32 and
// integers are not asked for: where they are missing, more than the type is missing (a library, a form).
std::optional<std::string> why_no_arithmetic(Device& device, DType type);

}  // namespace assay::ops
