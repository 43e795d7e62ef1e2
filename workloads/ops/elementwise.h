// Casts and sums of flat arrays.
#pragma once

#include "workloads/ops/op.h"

namespace assay::ops {

enum class ElementwiseKind {
  cast,     // out = a
  add,      // out = a + b
  combine,  // out = alpha a + beta b; f32, or f64 in the reference
};

struct ElementwiseDesc {
  ElementwiseKind kind = ElementwiseKind::cast;
  std::int64_t count = 0;
  DType in = DType::f32;  // type of a and b
  DType out = DType::f32;
  double alpha = 1;  // combine
  double beta = 1;

  bool operator==(const ElementwiseDesc&) const = default;
};

class Elementwise : public OpOf<ElementwiseDesc> {
 public:
  struct Args {
    const void* a = nullptr;  // (count)
    const void* b = nullptr;  // (count); add and combine
    void* out = nullptr;      // (count); may be a or b
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

}  // namespace assay::ops
