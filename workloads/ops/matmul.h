// Matrix product: descriptor, arguments and op.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay::ops {

// How the second operand is held while it is multiplied many times.
enum class WeightForm {
  plain,          // row-major, used as it lies
  packed,         // reordered once into the library's own layout
  inner_product,  // the library's inner-product primitive with its own weight layout
};
std::string_view name_of(WeightForm form);

// out (M, N) = op(a) (M, K) x op(b) (K, N), row-major; op transposes when the flag is set.
// Types: f64; f32; bf16 with f32 accumulation and f32 or bf16 output; u8 x s8 with s32 output.
struct MatmulDesc {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a = DType::f32;
  DType b = DType::f32;
  DType out = DType::f32;
  bool transpose_a = false;  // a is stored (K, M)
  bool transpose_b = false;  // b is stored (N, K)
  WeightForm form = WeightForm::plain;
};

// Why no device could make this product (sizes, types); nothing when it is sound.
std::optional<std::string> problem_of(const MatmulDesc& desc);

struct MatmulArgs {
  const void* a = nullptr;    // (M, K), or (K, M) transposed
  const void* b = nullptr;    // (K, N), or (N, K) transposed; what pack() wrote when the op packs
  void* out = nullptr;        // (M, N)
  void* workspace = nullptr;  // workspace_bytes()
};

class Matmul : public Op {
 public:
  // Bytes of b in the op's own layout; 0 when b is used as it lies.
  virtual std::size_t packed_bytes() const { return 0; }
  // Writes b (canonical layout) into `packed`, packed_bytes() long.
  virtual void pack(Stream&, const void* b, void* packed) { (void)b, (void)packed; }
  // True when pairs of int8 products are summed in 16 bits first, which saturate unless u8 operands stay below 128.
  virtual bool saturates_pairs() const { return false; }
  virtual void run(Stream&, const MatmulArgs&) = 0;
};

}  // namespace assay::ops
