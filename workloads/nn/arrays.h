// Host-side helpers for small arrays.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <cstdint>

namespace assay::nn {

// Checks f64, f32, tf32, bf16 and fp16; always true for other types, which have no infinities.
bool all_finite(const void* values, DType dtype, std::int64_t count);
// These functions and those below take f64 and f32 only.
void multiply(void* values, DType dtype, std::int64_t count, double factor);
void store(void* to, DType dtype, const double* values, std::int64_t count);
void load(double* to, DType dtype, const void* values, std::int64_t count);
// On an array in the device's memory, after the work queued on the stream; done when this returns.
void multiply(Device& device, Stream& stream, void* values, DType dtype, std::int64_t count, double factor);

}  // namespace assay::nn
