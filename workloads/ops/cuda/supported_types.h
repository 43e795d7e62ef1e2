// What our own kernels do not support, in words; compiled by the host compiler, since nvcc cannot format text (its
// front end fails on fmt's compile-time checks).
#pragma once

#include "harness/core/dtype.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace assay::ops {

// Empty if every type is f32, bf16 or fp16, else the reason to give.
std::string unless_f32_bf16_or_fp16(std::string_view op, std::initializer_list<DType> types);

// Throws Error: "no WHAT for DTYPE".
[[noreturn]] void refuse_type(const char* what, DType dtype);

}  // namespace assay::ops
