// Attention on bf16 by the instruction that multiplies pairs of bf16 and adds both products to an f32 sum. Softmax
// weights and score gradients are rounded to bf16 before they are multiplied. Compiled only for AVX-512 with BF16.
#include "workloads/ops/cpu/kernels/attention_blocks.h"
#include "workloads/ops/cpu/kernels/pairs.h"

namespace assay::ops {

extern const AttentionKernels::Type attention_pairs;

namespace {

struct InPairs {
  using Unit = std::uint32_t;
  static constexpr Index depth = 2;
  using Right = Bits;
  static Right right(const Unit* from) {
    Bits x;
    __builtin_memcpy(&x, from, sizeof x);
    return x;
  }
  static Float add_product(Float sum, Unit left, Right right) {
    return Float(_mm512_dpbf16_ps(__m512(sum), __m512bh(Bits{} + left), __m512bh(right)));
  }
  static void put(Unit* to, Bits x) { __builtin_memcpy(to, &x, sizeof x); }

  static void copy_row(const bf16* from, Index count, Unit* to) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(count) * sizeof(bf16));
  }
  // Interleaves rows 2r and 2r + 1 of a block element by element.
  static void columns(const Unit* rows, Index width, Unit* to) {
    for (Index r = 0; r < block; r += 2)
      for (Index i = 0; i < width; i += lanes) {
        const auto* low = reinterpret_cast<const bf16*>(rows) + r * width + i;
        const Bits lower = as_bits(load(low)), upper = as_bits(load(low + width));
        put(to + r / 2 * width + i, (lower >> 16) | upper);
      }
  }
  template <typename Weight>
  static void put_column(Unit* weights, float*, Index key, Index query, const Weight& weight) {
    const Float lower = weight(key), upper = weight(key + 1);
    put(weights + key / 2 * block + query, paired(lower, upper));
  }
  static void put_row(Unit* rows, Index key, Index query, Float x) {
    store(reinterpret_cast<bf16*>(rows) + key * block + query, x);
  }
  template <typename Scratch, typename Weight, typename Gradient>
  static void put_gradients(const Scratch& p, Index key, Index query, const Weight& weight, const Gradient& gradient) {
    const Float w0 = weight(key), w1 = weight(key + 1);
    const Float g0 = gradient(key, w0), g1 = gradient(key + 1, w1);
    put_row(p.weights, key, query, w0);
    put_row(p.weights, key + 1, query, w1);
    put_row(p.dscore_rows, key, query, g0);
    put_row(p.dscore_rows, key + 1, query, g1);
    put(p.dscores + key / 2 * block + query, paired(g0, g1));
  }
};

}  // namespace

const AttentionKernels::Type attention_pairs{attention_forward<InPairs, bf16>, attention_backward<InPairs, bf16>,
                                             forward_scratch<InPairs>, backward_scratch<InPairs>};

}  // namespace assay::ops
