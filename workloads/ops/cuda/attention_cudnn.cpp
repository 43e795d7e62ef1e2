#include "workloads/ops/cuda/attention_ways.h"

#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/attention_candidates.h"
#include "workloads/ops/cuda/attention_kernels.h"
#include "workloads/ops/cuda/known_choices.h"
#include "workloads/ops/cuda/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <vector>

namespace assay::ops {

namespace {

// Lengths of `count` whole sequences.
Buffer whole_lengths(Device& device, Stream& stream, std::int64_t count, std::int64_t seq) {
  const std::vector<std::int32_t> whole(static_cast<std::size_t>(count), static_cast<std::int32_t>(seq));
  Buffer lengths = device.allocate(whole.size() * sizeof(whole[0]));
  device.copy(lengths.data(), whole.data(), lengths.bytes(), stream);
  stream.synchronize();
  return lengths;
}

template <typename Base>
class CudnnAttention : public Base {
 public:
  CudnnAttention(Device& device, const AttentionDesc& desc, const AttentionCandidate& candidate, bool masked_tail,
                 std::string architecture)
      : d_(desc),
        slice_(candidate.slice),
        plan_(candidate.plan),
        repeats_(candidate.repeats),
        choice_(fmt::format("{}{}", plan_->name(), candidate.repeats ? "" : " (sums in any order)")),
        architecture_(std::move(architecture)) {
    if (masked_tail) whole_ = whole_lengths(device, *device.make_stream(), slice_, d_.seq);
  }
  std::string implementation() const override { return "flash:cuDNN"; }
  std::string choice() const override { return choice_; }
  std::string isa() const override { return architecture_; }
  bool repeats() const override { return repeats_; }
  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }

 protected:
  // An operand starting at sequence b; tokens are `stride` elements apart.
  cudnn::Operand tokens(std::int64_t id, const void* base, std::int64_t b, std::int64_t stride) const {
    return cudnn::operand(
        id, static_cast<const char*>(base) + b * d_.seq * stride * static_cast<std::int64_t>(size_of(d_.dtype)));
  }
  cudnn::Operand sums(const void* base, std::int64_t b) const {
    return cudnn::operand(cudnn::attention_log_sum_exp, static_cast<const float*>(base) + b * d_.heads * d_.seq);
  }
  cudnn::Operand lengths(const std::int32_t* base, std::int64_t b) const {
    return cudnn::operand(cudnn::attention_lengths, d_.lengths ? base + b : whole_.as<std::int32_t>());
  }
  // The operands that the graph has; lengths are last.
  std::span<const cudnn::Operand> used_operands(std::span<const cudnn::Operand> operands) const {
    return d_.lengths || whole_.data() ? operands : operands.first(operands.size() - 1);
  }
  // cuDNN leaves garbage in masked rows.
  void clear(void* rows, std::int64_t heads, std::int64_t stride, const std::int32_t* lengths,
             cudaStream_t queue) const {
    const auto bytes = static_cast<std::int64_t>(size_of(d_.dtype));
    attention_zero_masked(rows, d_.batch, d_.seq, heads * d_.head_dim * bytes, stride * bytes, lengths, queue);
  }
  std::int64_t out_stride() const { return d_.heads * d_.head_dim; }

  AttentionDesc d_;
  std::int64_t slice_;  // sequences at a time; divides the batch
  std::shared_ptr<cudnn::Plan> plan_;

 private:
  Buffer whole_;  // lengths of `slice_` whole sequences, or nothing
  bool repeats_;
  std::string choice_;
  std::string architecture_;
};

class Forward final : public CudnnAttention<AttentionForward> {
 public:
  using CudnnAttention::CudnnAttention;

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t queue = cuda::native(stream);
    for (std::int64_t b = 0; b < d_.batch; b += slice_) {
      const std::array operands = {tokens(cudnn::attention_q, args.q, b, d_.q_stride),
                                   tokens(cudnn::attention_k, args.k, b, d_.k_stride),
                                   tokens(cudnn::attention_v, args.v, b, d_.v_stride),
                                   tokens(cudnn::attention_out, args.out, b, out_stride()),
                                   sums(args.log_sum_exp, b),
                                   lengths(args.lengths, b)};
      plan_->run(queue, used_operands(operands), args.workspace);
    }
    if (!d_.lengths) return;
    clear(args.out, d_.heads, out_stride(), args.lengths, queue);
    attention_zero_masked_sums(static_cast<float*>(args.log_sum_exp), d_.batch, d_.heads, d_.seq, args.lengths, queue);
  }
};

class Backward final : public CudnnAttention<AttentionBackward> {
 public:
  using CudnnAttention::CudnnAttention;

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t queue = cuda::native(stream);
    for (std::int64_t b = 0; b < d_.batch; b += slice_) {
      const std::array operands = {tokens(cudnn::attention_q, args.q, b, d_.q_stride),
                                   tokens(cudnn::attention_k, args.k, b, d_.k_stride),
                                   tokens(cudnn::attention_v, args.v, b, d_.v_stride),
                                   tokens(cudnn::attention_out, args.out, b, out_stride()),
                                   tokens(cudnn::attention_dout, args.dout, b, out_stride()),
                                   tokens(cudnn::attention_dq, args.dq, b, d_.q_stride),
                                   tokens(cudnn::attention_dk, args.dk, b, d_.k_stride),
                                   tokens(cudnn::attention_dv, args.dv, b, d_.v_stride),
                                   sums(args.log_sum_exp, b),
                                   lengths(args.lengths, b)};
      plan_->run(queue, used_operands(operands), args.workspace);
    }
    if (!d_.lengths) return;
    clear(args.dq, d_.heads, d_.q_stride, args.lengths, queue);
    clear(args.dk, d_.kv_heads, d_.k_stride, args.lengths, queue);
    clear(args.dv, d_.kv_heads, d_.v_stride, args.lengths, queue);
  }
};

struct Rows {
  void *q = nullptr, *k = nullptr, *v = nullptr;
};

// One array if q, k and v share rows, else three.
Rows random_rows(TrialArrays& arrays, const AttentionDesc& d, const char* purpose) {
  const std::int64_t tokens = d.batch * d.seq, q = d.heads * d.head_dim, kv = d.kv_heads * d.head_dim;
  const auto bytes = static_cast<std::int64_t>(size_of(d.dtype));
  if (d.q_stride == d.k_stride && d.q_stride == d.v_stride && d.q_stride >= q + 2 * kv) {
    auto* base = static_cast<std::byte*>(arrays.array(d.dtype, tokens * d.q_stride, purpose));
    return {base, base + q * bytes, base + (q + kv) * bytes};
  }
  return {arrays.array(d.dtype, tokens * d.q_stride, purpose), arrays.array(d.dtype, tokens * d.k_stride, purpose),
          arrays.array(d.dtype, tokens * d.v_stride, purpose)};
}

template <typename Op>
TryOut<Op> trial_of(Device& device, Stream& stream, const AttentionDesc& d, std::size_t workspace) {
  const auto arrays = std::make_shared<TrialArrays>(device, stream, workspace);
  const std::int64_t tokens = d.batch * d.seq, row = d.heads * d.head_dim;
  typename Op::Args args;
  const Rows in = random_rows(*arrays, d, "qkv");
  args.q = in.q, args.k = in.k, args.v = in.v;
  args.out = arrays->array(d.dtype, tokens * row, "out");
  args.log_sum_exp = arrays->array(DType::f32, tokens * d.heads, "log_sum_exp");
  if constexpr (std::is_base_of_v<AttentionBackward, Op>) {
    const Rows gradients = random_rows(*arrays, d, "dqkv");
    args.dq = gradients.q, args.dk = gradients.k, args.dv = gradients.v;
    args.dout = arrays->array(d.dtype, tokens * row, "dout");
  }
  if (d.lengths) args.lengths = static_cast<std::int32_t*>(arrays->keep(whole_lengths(device, stream, d.batch, d.seq)));
  args.workspace = arrays->workspace();
  return [arrays, args, &stream](Op& op) { op.run(stream, args); };
}

// The fastest by trial; the first if the device has no memory for one.
template <typename Base, typename Op>
Made<Base> make(Device& device, const AttentionDesc& d, bool backward, const std::string& architecture) {
  if (const std::string reason = cudnn_refusal(d); !reason.empty()) return Made<Base>::no(reason);
  static auto& known = *new KnownChoices<cudnn::AttentionGraph, AttentionCandidate>;
  const auto op_by = [&](const AttentionCandidate& candidate) {
    return std::make_unique<Op>(device, d, candidate, has_masked_tail(d, backward), architecture);
  };
  std::string why_none;
  const auto named = [&](const std::string& name) -> std::optional<AttentionCandidate> {
    const std::vector<AttentionCandidate> candidates = attention_candidates(d, backward, why_none, name);
    return candidates.empty() ? std::nullopt : std::optional(candidates[0]);
  };
  const auto search = [&]() -> std::optional<AttentionCandidate> {
    why_none.clear();
    std::vector<AttentionCandidate> candidates = attention_candidates(d, backward, why_none);
    if (candidates.size() < 2) return candidates.empty() ? std::nullopt : std::optional(candidates[0]);
    std::vector<std::unique_ptr<Op>> ops;
    std::size_t scratch = 0;
    for (const AttentionCandidate& candidate : candidates) {
      ops.push_back(op_by(candidate));
      scratch = std::max(scratch, ops.back()->workspace_bytes());
    }
    const auto stream = device.make_stream();
    TryOut<Op> run;
    try {
      run = trial_of<Op>(device, *stream, d, scratch);
    } catch (const Error&) {
      candidates[0].tried = false;
      return candidates[0];
    }
    const auto best = fastest(device, *stream, ops, run);
    stream->synchronize();  // before the trial's arrays are freed
    if (best) return candidates[*best];
    why_none = fmt::format("{} could run none of its {} plans", cudnn::version(), ops.size());
    return std::nullopt;
  };
  const auto choice = known.find(device, attention_graph_of(d, backward), named, search);
  if (!choice) return Made<Base>::no(why_none);
  return Made<Base>(op_by(*choice));
}

}  // namespace

Made<AttentionForward> make_cudnn_attention_forward(Device& device, const AttentionDesc& desc,
                                                    const std::string& architecture) {
  return make<AttentionForward, Forward>(device, desc, false, architecture);
}

Made<AttentionBackward> make_cudnn_attention_backward(Device& device, const AttentionDesc& desc,
                                                      const std::string& architecture) {
  return make<AttentionBackward, Backward>(device, desc, true, architecture);
}

}  // namespace assay::ops
