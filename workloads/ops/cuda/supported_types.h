// Types that own kernels are built for, said by the host's compiler: nvcc takes no fmt::format.
#pragma once

#include "harness/core/dtype.h"

#include <initializer_list>
#include <string>
#include <string_view>

namespace assay::ops {

// Empty when every type is f32, bf16 or fp16, else the reason to give.
std::string unless_f32_bf16_or_fp16(std::string_view op, std::initializer_list<DType> types);

}  // namespace assay::ops
