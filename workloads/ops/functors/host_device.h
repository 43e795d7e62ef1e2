// Marks functions that both a host and a device compiler build. A device build defines the macro as its own attributes;
// everywhere else it is nothing.
#pragma once

#ifndef ASSAY_HOST_DEVICE
#define ASSAY_HOST_DEVICE
#endif

// What only a GPU has.
#ifdef __CUDA_ARCH__
namespace assay::ops::functors::hardware {

// e^x by the hardware's power of two, within 2 + 1.2 |x| ulp; 0 for what is no normal number, on which __expf() would
// spend four instructions more.
__device__ __forceinline__ float exp(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 0x1.715476p+0f));  // log2(e)
  return power;
}

}  // namespace assay::ops::functors::hardware
#endif
