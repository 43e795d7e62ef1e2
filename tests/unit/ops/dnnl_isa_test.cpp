// The instruction sets of oneDNN kernels: f32, avx512_bf16, AMX and emulated bf16 never share a name.
#include "workloads/ops/cpu/dnnl_isa.h"

#include <gtest/gtest.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace assay::ops {
namespace {

unsigned bits(dnnl::cpu_isa isa) { return static_cast<unsigned>(isa); }

TEST(DnnlIsa, ComesFromTheKernelsName) {
  const unsigned all = bits(dnnl::cpu_isa::avx512_core_amx);
  EXPECT_EQ(dnnl_kernel_isa("brg:avx512_core", DType::f32, all), "avx512_core");
  EXPECT_EQ(dnnl_kernel_isa("brg:avx512_core_bf16", DType::bf16, all), "avx512_core_bf16");
  EXPECT_EQ(dnnl_kernel_isa("brg:avx512_core_amx", DType::bf16, all), "avx512_core_amx");
  EXPECT_EQ(dnnl_kernel_isa("brgemm:avx2", DType::f32, all), "avx2");
  EXPECT_EQ(dnnl_kernel_isa("brg:avx512_core", DType::bf16, all), "avx512_core_emulated_bf16");
}

TEST(DnnlIsa, OfJitGemmFollowsFromTheCpu) {
  EXPECT_EQ(dnnl_kernel_isa("gemm:jit:bf16", DType::bf16, bits(dnnl::cpu_isa::avx512_core)),
            "avx512_core_emulated_bf16");
  EXPECT_EQ(dnnl_kernel_isa("gemm:jit:bf16", DType::bf16, bits(dnnl::cpu_isa::avx512_core_bf16)), "avx512_core_bf16");
  EXPECT_EQ(dnnl_kernel_isa("gemm:jit", DType::u8, bits(dnnl::cpu_isa::avx512_core_bf16)), "avx512_core_vnni");
  EXPECT_EQ(dnnl_kernel_isa("x64:gemm_s8u8s32:jit", DType::u8, bits(dnnl::cpu_isa::avx512_core)), "avx512_core");
  EXPECT_EQ(dnnl_kernel_isa("gemm:jit:f32", DType::f32, bits(dnnl::cpu_isa::avx2)), "avx2");
  EXPECT_EQ(dnnl_kernel_isa("gemm:jit:f32", DType::f32, bits(dnnl::cpu_isa::sse41)), "sse41");
}

TEST(DnnlIsa, RecognisesReferenceKernels) {
  EXPECT_TRUE(is_reference_kernel("ref:any"));
  EXPECT_TRUE(is_reference_kernel("ref_int8:any"));
  EXPECT_TRUE(is_reference_kernel("simple:any"));
  EXPECT_FALSE(is_reference_kernel("gemm:jit"));
  EXPECT_FALSE(is_reference_kernel("brg:avx512_core"));
}

TEST(DnnlIsa, Int8SaturatesWithoutVnni) {
  EXPECT_TRUE(saturates_int8("avx512_core"));
  EXPECT_TRUE(saturates_int8("avx2"));
  EXPECT_FALSE(saturates_int8("avx512_core_vnni"));
  EXPECT_FALSE(saturates_int8("avx2_vnni"));
  EXPECT_FALSE(saturates_int8("avx512_core_amx"));
}

}  // namespace
}  // namespace assay::ops
