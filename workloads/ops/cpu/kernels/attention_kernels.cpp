// Attention computed in f32, for operands of either type.
#include "workloads/ops/cpu/kernels/attention_kernels.h"

#include "harness/device/cpu/kernels.h"
#include "workloads/ops/cpu/kernels/attention_blocks.h"

namespace assay::ops {
namespace {

struct InF32 : SinglePrecision {
  template <typename T>
  static void copy_row(const T* from, Index count, float* to) {
    for_vectors(0, count, [&](Index i, auto n) { store(to + i, load(from + i, n), n); });
  }
  static void columns(const float* rows, Index width, float* to) {
    for (Index i = 0; i < block * width; i += lanes) store(to + i, load(rows + i));
  }
  template <typename Weight>
  static void put_column(float*, float* scores, Index key, Index query, const Weight& weight) {
    store(scores + key * block + query, weight(key));
  }
  template <typename Scratch, typename Weight, typename Gradient>
  static void put_gradients(const Scratch& p, Index key, Index query, const Weight& weight, const Gradient& gradient) {
    const Float w = weight(key), g = gradient(key, w);
    store(p.score_block + key * block + query, w);
    store(p.dscore_block + key * block + query, g);
  }
};

constexpr AttentionKernels attention_kernels{
    {attention_forward<InF32, float>, attention_backward<InF32, float>, forward_scratch<InF32>,
     backward_scratch<InF32>},
    {attention_forward<InF32, bf16>, attention_backward<InF32, bf16>, forward_scratch<InF32>, backward_scratch<InF32>}};

}  // namespace

}  // namespace assay::ops

template <>
const assay::ops::AttentionKernels
    assay::cpu::KernelsFor<assay::ops::AttentionKernels, assay::cpu::Isa::ASSAY_ISA>::table =
        assay::ops::attention_kernels;
