// Compares two implementations' outputs on the device.
#pragma once

#include "harness/device/device.h"
#include "workloads/ops/tolerance.h"

#include <cstdint>

namespace assay::ops {

// Whether `got` is within the tolerance of `want`, element by element and as vectors, by the rules of the parity tests;
// NaN agrees with NaN. Arrays of `count` elements of f32, bf16 or fp16 on the device, written in stream order. Waits
// for the stream.
bool agree(Device& device, Stream& stream, const void* got, const void* want, DType dtype, std::int64_t count,
           const Tolerance& tolerance);

}  // namespace assay::ops
