#include "harness/comm/nccl/types.h"

#include "harness/core/error.h"

namespace assay::nccl {

ncclDataType_t datatype_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return ncclFloat64;
    case DType::f32:
    case DType::tf32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::fp16: return ncclFloat16;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 1)
    case DType::fp8_e4m3: return ncclFloat8e4m3;
    case DType::fp8_e5m2: return ncclFloat8e5m2;
#else
    case DType::fp8_e4m3:
    case DType::fp8_e5m2: break;
#endif
    case DType::i64: return ncclInt64;
    case DType::i32: return ncclInt32;
    case DType::s8: return ncclInt8;
    case DType::u8: return ncclUint8;
  }
  throw Error(fmt::format("NCCL {}.{} has no {}", NCCL_MAJOR, NCCL_MINOR, name_of(dtype)));
}

ncclRedOp_t operation_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::min: return ncclMin;
  }
  throw Error("NCCL has no such reduction");
}

}  // namespace assay::nccl
