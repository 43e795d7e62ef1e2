// Operations that GCC's vector extensions express badly, for AVX-512 (F, BW, DQ, VL).
#pragma once

#include "harness/device/cpu/vector/avx512.h"
#include "harness/device/cpu/vector/round_bf16.h"
