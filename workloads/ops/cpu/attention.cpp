// Attention: threads share the heads of all sequences. A head's result does not depend on which thread computes it.
#include "workloads/ops/cpu/cpu_ops.h"
#include "workloads/ops/cpu/special_kernels.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

namespace assay::ops {

namespace {

constexpr std::int64_t scratch_unit = 16;  // floats in a cache line

class Heads {
 public:
  Heads(const AttentionDesc& desc, std::int64_t scratch)
      : d_(desc),
        threads_(omp_get_max_threads()),
        scratch_((scratch + scratch_unit - 1) / scratch_unit * scratch_unit),
        scale_(static_cast<float>(desc.scale != 0 ? desc.scale : 1.0 / std::sqrt(static_cast<double>(desc.head_dim)))) {
  }

  std::int64_t count() const { return d_.batch * d_.kv_heads; }
  int threads() const { return threads_; }
  std::size_t workspace_bytes() const { return sizeof(float) * static_cast<std::size_t>(threads_ * scratch_); }

  // The operands of head `index`, with the scratch memory of `thread`.
  template <typename Args>
  AttentionHead head(const Args& args, std::int64_t index, int thread) const {
    const std::int64_t b = index / d_.kv_heads, kv = index % d_.kv_heads, group = d_.heads / d_.kv_heads;
    AttentionHead h;
    h.q_stride = d_.q_stride;
    h.k_stride = d_.k_stride;
    h.v_stride = d_.v_stride;
    h.out_stride = d_.heads * d_.head_dim;
    h.q = at(args.q, b * d_.seq * h.q_stride + kv * group * d_.head_dim);
    h.k = at(args.k, b * d_.seq * h.k_stride + kv * d_.head_dim);
    h.v = at(args.v, b * d_.seq * h.v_stride + kv * d_.head_dim);
    h.log_sum_exp = static_cast<float*>(const_cast<void*>(args.log_sum_exp)) + (b * d_.heads + kv * group) * d_.seq;
    h.scratch = static_cast<float*>(args.workspace) + thread * scratch_;
    h.seq = d_.seq;
    h.length = d_.lengths ? std::clamp<std::int64_t>(args.lengths[b], 0, d_.seq) : d_.seq;
    h.head_dim = d_.head_dim;
    h.group = group;
    h.causal = d_.causal;
    h.scale = scale_;
    return h;
  }
  std::int64_t out_offset(std::int64_t index) const {
    const std::int64_t b = index / d_.kv_heads, kv = index % d_.kv_heads, group = d_.heads / d_.kv_heads;
    return (b * d_.seq * d_.heads + kv * group) * d_.head_dim;
  }
  template <typename Pointer>
  Pointer at(Pointer data, std::int64_t elements) const {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
    return static_cast<Byte*>(data) + elements * static_cast<std::int64_t>(size_of(d_.dtype));
  }

 private:
  AttentionDesc d_;
  int threads_;
  std::int64_t scratch_;
  float scale_;
};

// The address in `data` at the offset that `place` has in `base`.
void* at_same_offset(void* data, const void* place, const void* base) {
  return static_cast<char*>(data) + (static_cast<const char*>(place) - static_cast<const char*>(base));
}

const AttentionKernels::Type& attention_kernels_for(DType dtype) {
  const AttentionKernels& kernels = cpu::kernels<AttentionKernels>();
  if (dtype == DType::f32) return kernels.f32;
  const AttentionKernels::Type* pairs = attention_pair_kernels();
  return pairs ? *pairs : kernels.bf16;
}

class CpuAttentionForward final : public VectorOp<AttentionForward> {
 public:
  CpuAttentionForward(const AttentionDesc& desc)
      : kernels_(attention_kernels_for(desc.dtype)),
        heads_(desc, kernels_.forward_scratch(desc.seq, desc.head_dim)),
        // If there are fewer heads than threads, several threads share one, each with its own copy of the keys.
        parts_(static_cast<int>((heads_.threads() + heads_.count() - 1) / heads_.count())) {}

  std::size_t workspace_bytes() const override { return heads_.workspace_bytes(); }

  void run(Stream&, const Args& args) override {
#pragma omp parallel for schedule(dynamic) num_threads(heads_.threads())
    for (std::int64_t task = 0; task < heads_.count() * parts_; ++task) {
      AttentionHead head = heads_.head(args, task / parts_, omp_get_thread_num());
      head.to_out = heads_.at(args.out, heads_.out_offset(task / parts_));
      head.part = static_cast<int>(task % parts_);
      head.parts = parts_;
      kernels_.forward(head);
    }
  }

 private:
  const AttentionKernels::Type& kernels_;
  Heads heads_;
  int parts_;
};

class CpuAttentionBackward final : public VectorOp<AttentionBackward> {
 public:
  CpuAttentionBackward(const AttentionDesc& desc)
      : kernels_(attention_kernels_for(desc.dtype)), heads_(desc, kernels_.backward_scratch(desc.seq, desc.head_dim)) {}

  std::size_t workspace_bytes() const override { return heads_.workspace_bytes(); }

  void run(Stream&, const Args& args) override {
#pragma omp parallel for schedule(dynamic) num_threads(heads_.threads())
    for (std::int64_t index = 0; index < heads_.count(); ++index) {
      AttentionHead head = heads_.head(args, index, omp_get_thread_num());
      head.out = heads_.at(args.out, heads_.out_offset(index));
      head.dout = heads_.at(args.dout, heads_.out_offset(index));
      // Gradients have the layout of their operands.
      head.dq = at_same_offset(args.dq, head.q, args.q);
      head.dk = at_same_offset(args.dk, head.k, args.k);
      head.dv = at_same_offset(args.dv, head.v, args.v);
      kernels_.backward(head);
    }
  }

 private:
  const AttentionKernels::Type& kernels_;
  Heads heads_;
};

}  // namespace

template <>
Made<AttentionForward> make_cpu(const AttentionDesc& desc) {
  return make_unless<AttentionForward, CpuAttentionForward>(type_problem("attention", {desc.dtype}), desc);
}

template <>
Made<AttentionBackward> make_cpu(const AttentionDesc& desc) {
  return make_unless<AttentionBackward, CpuAttentionBackward>(type_problem("attention", {desc.dtype}), desc);
}

}  // namespace assay::ops
