// Small things done to arrays, by the host.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <cstdint>

namespace assay::nn {

// Of f64, f32, tf32, bf16 or fp16; arrays of other types hold no infinities.
bool all_finite(const void* values, DType dtype, std::int64_t count);
// f64 and f32, also those below.
void multiply(void* values, DType dtype, std::int64_t count, double factor);
void store(void* to, DType dtype, const double* values, std::int64_t count);
void load(double* to, DType dtype, const void* values, std::int64_t count);
// In the device's memory, behind what the stream holds; it has ended when this returns.
void multiply(Device& device, Stream& stream, void* values, DType dtype, std::int64_t count, double factor);

}  // namespace assay::nn
