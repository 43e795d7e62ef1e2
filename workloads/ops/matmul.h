// Matrix product: descriptor, arguments and op.
#pragma once

#include "workloads/ops/op.h"

#include <optional>
#include <string>
#include <string_view>

namespace assay::ops {

// How the second operand is stored while it is multiplied many times.
enum class WeightForm {
  plain,          // row-major, used as is
  packed,         // reordered once into the library's own layout
  inner_product,  // the library's inner-product primitive with its own weight layout
  tiles,          // reordered once into panels for the processor's tile instructions: bf16 on CPUs with AMX
};
std::string_view name_of(WeightForm form);

// Applied to each element of a product before it is stored.
enum class Epilogue {
  none,
  gelu_tanh,           // out = gelu(z), z = a b + bias; z is written to args.aux
  gelu_erf,            // the same with the exact form
  gelu_tanh_gradient,  // out = (a b) * gelu'(z), z read from args.aux
  gelu_erf_gradient,
};

// out (M, N) = epilogue(op(a) (M, K) x op(b) (K, N) + bias), row-major; op transposes when the flag is set.
// Types: f64; f32; tf32 (stored as f32, multiplied with 10 bits of mantissa) with f32 or tf32 output; bf16 and fp16
// with f32 accumulation and output in f32 or their own type; fp8 x fp8, not both e5m2, with f32 accumulation and f32,
// bf16 or fp16 output; u8 x s8 and s8 x s8 with s32 output.
struct MatmulDesc {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType a = DType::f32;
  DType b = DType::f32;
  DType out = DType::f32;
  bool transpose_a = false;  // a is stored (K, M)
  bool transpose_b = false;  // b is stored (N, K)
  // Elements from one stored row to the next; 0: contiguous rows. aux has out's stride. A packed b has no strides.
  std::int64_t a_stride = 0;
  std::int64_t b_stride = 0;
  std::int64_t out_stride = 0;
  WeightForm form = WeightForm::plain;
  DType pack_from = DType::f32;  // type that pack() reads (f32 masters of bf16 products); ignored for plain
  bool bias = false;             // adds args.bias to each row; a GPU rounds it to a 16-bit output's type first
  DType bias_type = DType::f32;
  Epilogue epilogue = Epilogue::none;  // aux has the type of out
  bool accumulate = false;             // adds to out; not with an epilogue
  bool row_sums = false;               // writes or adds the sums of op(a)'s rows to args.row_sums: the bias gradient
                                       // if a is the output's gradient, transposed
  bool fast_accumulate = false;        // fp8 on Hopper: sums keep only the tensor core's reduced precision

  std::int64_t a_row() const { return a_stride ? a_stride : transpose_a ? m : k; }
  std::int64_t b_row() const { return b_stride ? b_stride : transpose_b ? k : n; }
  std::int64_t out_row() const { return out_stride ? out_stride : n; }

  bool operator==(const MatmulDesc&) const = default;
};

// Why no device could make this product (sizes, types); nothing if it is valid.
std::optional<std::string> problem_of(const MatmulDesc& desc);

struct MatmulArgs {
  const void* a = nullptr;     // (M, K), or (K, M) transposed
  const void* b = nullptr;     // (K, N), or (N, K) transposed; what pack() wrote if the op packs
  void* out = nullptr;         // (M, N)
  void* workspace = nullptr;   // workspace_bytes()
  const void* bias = nullptr;  // (N) of bias_type
  void* aux = nullptr;         // (M, N) of out's type: written by gelu, read by its gradient
  void* row_sums = nullptr;    // (M) of f32, or f64 in an f64 product; added to when the op accumulates
  // fp8 only: one number each in device memory that the product is multiplied by, the inverse of the scales that a and
  // b were quantized with; null: 1.
  const float* scale_a = nullptr;
  const float* scale_b = nullptr;
};

class Matmul : public OpOf<MatmulDesc> {
 public:
  using Args = MatmulArgs;
  // Bytes of b in the op's own layout; 0 if b is used as is.
  virtual std::size_t packed_bytes() const { return 0; }
  // Writes b (canonical layout, of type pack_from) into `packed`, packed_bytes() long.
  virtual void pack(Stream&, const void* b, void* packed) { (void)b, (void)packed; }
  // True if pairs of int8 products are first summed in 16 bits, which saturate unless u8 operands stay below 128.
  virtual bool saturates_pairs() const { return false; }
  virtual void run(Stream&, const MatmulArgs&) = 0;
};

}  // namespace assay::ops
