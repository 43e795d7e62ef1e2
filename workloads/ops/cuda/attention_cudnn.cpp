#include "workloads/ops/cuda/attention_cudnn.h"

#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/attention_kernels.h"
#include "workloads/ops/cuda/cudnn/attention.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace assay::ops {

namespace {

// The deterministic backward pass keeps the gradient of all scores of the sequences that it is given, in 16 bits: more
// sequences than fit these bytes are taken in turns.
constexpr std::int64_t most_bytes_of_scores = std::int64_t{1} << 30;
// Keys are taken in tiles of these; the tail of the last one must be masked by lengths (cuDNN before 9.26 computes
// NaN from it where the log-sum-exp is far below zero: NVIDIA/cudnn-frontend#160, #1072).
constexpr std::int64_t tile = 128;

std::string refusal(const AttentionDesc& d) {
  if (d.dtype != DType::bf16 && d.dtype != DType::fp16) return fmt::format("cuDNN: no {}", name_of(d.dtype));
  // Rows are read 16 bytes at a time.
  if (d.head_dim % 8 != 0 || d.q_stride % 8 != 0 || d.k_stride % 8 != 0 || d.v_stride % 8 != 0)
    return fmt::format("cuDNN: heads of {} elements and rows of {}, {} and {} are not all multiples of 8", d.head_dim,
                       d.q_stride, d.k_stride, d.v_stride);
  if (d.seq == 1) return "cuDNN: sequences of one token";
  return {};
}

template <typename Base>
class CudnnAttention : public Base {
 public:
  CudnnAttention(Device& device, const AttentionDesc& desc, std::int64_t slice, bool masked_tail,
                 std::shared_ptr<cudnn::Plan> plan, std::string architecture)
      : d_(desc),
        slice_(slice),
        plan_(std::move(plan)),
        implementation_("flash:" + plan_->name()),
        architecture_(std::move(architecture)) {
    if (!masked_tail) return;
    const std::vector<std::int32_t> whole(static_cast<std::size_t>(slice), static_cast<std::int32_t>(d_.seq));
    whole_ = device.allocate(whole.size() * sizeof(whole[0]));
    const auto stream = device.make_stream();
    device.copy(whole_.data(), whole.data(), whole.size() * sizeof(whole[0]), *stream);
    stream->synchronize();
  }
  std::string implementation() const override { return implementation_; }
  std::string isa() const override { return architecture_; }
  std::size_t workspace_bytes() const override { return plan_->workspace_bytes(); }

 protected:
  // An operand from sequence b on whose tokens are `stride` elements apart.
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
  // Operands that the graph has; lengths come last.
  std::span<const cudnn::Operand> given(std::span<const cudnn::Operand> operands) const {
    return d_.lengths || whole_.data() ? operands : operands.first(operands.size() - 1);
  }
  // cuDNN leaves what it likes in rows that take no part.
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
  std::string implementation_;
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
      plan_->run(queue, given(operands), args.workspace);
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
      plan_->run(queue, given(operands), args.workspace);
    }
    if (!d_.lengths) return;
    clear(args.dq, d_.heads, d_.q_stride, args.lengths, queue);
    clear(args.dk, d_.kv_heads, d_.k_stride, args.lengths, queue);
    clear(args.dv, d_.kv_heads, d_.v_stride, args.lengths, queue);
  }
};

// The most sequences at a time, a divisor of the batch.
std::int64_t slice_of(const AttentionDesc& d, bool backward) {
  const std::int64_t keys = (d.seq + tile - 1) / tile * tile;
  const std::int64_t bytes = backward ? d.heads * keys * keys * 2 : 0;
  std::int64_t slice = d.batch;
  while (slice > 1 && (d.batch % slice != 0 || slice * bytes > most_bytes_of_scores)) --slice;
  return slice;
}

template <typename Base, typename Op>
Made<Base> make(Device& device, const AttentionDesc& d, bool backward, const std::string& architecture) {
  if (const std::string reason = refusal(d); !reason.empty()) return Made<Base>::no(reason);
  const bool masked_tail = backward && !d.lengths && d.seq % tile != 0;
  cudnn::AttentionGraph graph;
  graph.backward = backward;
  graph.batch = slice_of(d, backward);
  graph.seq = d.seq;
  graph.heads = d.heads;
  graph.kv_heads = d.kv_heads;
  graph.head_dim = d.head_dim;
  graph.q_stride = d.q_stride;
  graph.k_stride = d.k_stride;
  graph.v_stride = d.v_stride;
  graph.causal = d.causal;
  graph.lengths = d.lengths || masked_tail;
  graph.scale = static_cast<float>(d.scale != 0 ? d.scale : 1 / std::sqrt(static_cast<double>(d.head_dim)));
  graph.dtype = d.dtype;
  cudnn::Limits limits;
  limits.workspace_bytes = std::size_t{8} << 30;  // one long sequence may need more than it should
  limits.most = 1;
  const cudnn::Plans found = cudnn::attention_plans(graph, limits);
  if (found.plans.empty()) return Made<Base>::no(found.why_not);
  return Made<Base>(std::make_unique<Op>(device, d, graph.batch, masked_tail, found.plans.front(), architecture));
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
