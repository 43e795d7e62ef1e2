// MPI's types and operations for our element types and reductions.
#pragma once

#include "harness/comm/communicator.h"

#include <mpi.h>

#include <cstddef>

namespace assay::mpi {

[[noreturn]] void fail(int code, const char* call);

// Throws Error with `call` and MPI's message for `code` unless it is MPI_SUCCESS.
inline void check(int code, const char* call) {
  if (code != MPI_SUCCESS) [[unlikely]]
    fail(code, call);
}

// The datatype that moves elements of `dtype`; bf16 and fp16 travel as 16-bit integers.
MPI_Datatype datatype_of(DType dtype);

// Reductions over MPI's own types, and over bf16 by user-defined operations (f32 sums, rounded to nearest even).
class Reductions {
 public:
  Reductions();
  ~Reductions();
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  // Throws Error for types that cannot be reduced (fp16, fp8).
  MPI_Op find(ReduceOp op, DType dtype) const {
    if (dtype == DType::fp16 || dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2) [[unlikely]]
      refuse(dtype);
    return (dtype == DType::bf16 ? bf16_ : builtin_)[static_cast<int>(op)];
  }

 private:
  [[noreturn]] static void refuse(DType dtype);

  MPI_Op bf16_[3];
  MPI_Op builtin_[3] = {MPI_SUM, MPI_MAX, MPI_MIN};
};

// `count` elements of `element` as one datatype, for calls whose count is an int.
class LargeType {
 public:
  LargeType(MPI_Datatype element, std::size_t count, std::size_t max_count);
  ~LargeType();
  LargeType(const LargeType&) = delete;
  LargeType& operator=(const LargeType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

}  // namespace assay::mpi
