#include "workloads/ops/cuda/attention_ways.h"

#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/attention_kernels.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
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

// A reproducible backward pass stores the gradient of all scores of its sequences in 16 bits; any other one stores dq
// in f32. Sequences beyond this size are processed in slices.
constexpr std::int64_t max_slice_bytes = std::int64_t{1} << 30;
// Keys per tile; the tail of the last tile must be masked by lengths (cuDNN before 9.26 computes NaN from it if the
// log-sum-exp is far below zero: NVIDIA/cudnn-frontend#160, #1072).
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

// A candidate: a plan and how many sequences it processes at a time, a divisor of the batch.
struct Candidate {
  std::int64_t slice = 1;
  bool repeats = true;  // its bits
  std::shared_ptr<cudnn::Plan> plan;
  bool tried = true;  // false: the first; no memory to try others

  static std::string prefix(std::int64_t slice, bool repeats) {
    return fmt::format("{} sequences, {} order: ", slice, repeats ? "fixed" : "any");
  }
  std::string name() const { return tried ? prefix(slice, repeats) + plan->name() : std::string(); }
};

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
  CudnnAttention(Device& device, const AttentionDesc& desc, const Candidate& candidate, bool masked_tail,
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

// The maximum number of sequences at a time, a divisor of the batch, at `bytes` each. Nothing if the front end would
// pass cuDNN unaligned scratch: it follows one f32 sum per row and must be aligned to 16 bytes.
std::optional<std::int64_t> slice_of(const AttentionDesc& d, bool backward, std::int64_t bytes) {
  for (std::int64_t slice = d.batch; slice > 0; --slice) {
    if (d.batch % slice != 0 || (slice > 1 && slice * bytes > max_slice_bytes)) continue;
    if (!backward || slice * d.heads * d.seq % 4 == 0) return slice;
  }
  return std::nullopt;
}

bool has_masked_tail(const AttentionDesc& d, bool backward) { return backward && !d.lengths && d.seq % tile != 0; }

cudnn::AttentionGraph graph_of(const AttentionDesc& d, bool backward) {
  cudnn::AttentionGraph graph;
  graph.backward = backward;
  graph.batch = d.batch;
  graph.seq = d.seq;
  graph.heads = d.heads;
  graph.kv_heads = d.kv_heads;
  graph.head_dim = d.head_dim;
  graph.q_stride = d.q_stride;
  graph.k_stride = d.k_stride;
  graph.v_stride = d.v_stride;
  graph.causal = d.causal;
  graph.lengths = d.lengths || has_masked_tail(d, backward);
  graph.scale = static_cast<float>(d.scale != 0 ? d.scale : 1 / std::sqrt(static_cast<double>(d.head_dim)));
  graph.dtype = d.dtype;
  return graph;
}

// The best guesses of cuDNN's heuristics: forward; backward with sums in a fixed order and, if keys span more than one
// tile so that order matters, in any order, which saves memory traffic that grows with the square of the sequence. With
// a name, only the candidate of this name is built.
std::vector<Candidate> candidates_of(const AttentionDesc& d, bool backward, std::string& why_none,
                                     const std::string& name = {}) {
  cudnn::AttentionGraph graph = graph_of(d, backward);
  std::vector<Candidate> candidates;
  const auto add = [&](bool repeats, std::int64_t bytes, std::size_t max_plans) {
    const auto slice = slice_of(d, backward, bytes);
    if (!slice) {
      why_none = fmt::format("cuDNN: {} rows of queries do not fill a multiple of 16 bytes", d.batch * d.heads * d.seq);
      return;
    }
    graph.batch = *slice;
    cudnn::Limits limits;
    limits.workspace_bytes = std::size_t{8} << 30;  // one long sequence may need a lot
    limits.max_plans = max_plans;
    limits.deterministic = repeats;
    if (!name.empty()) {
      const std::string prefix = Candidate::prefix(*slice, repeats);
      if (!name.starts_with(prefix)) return;
      limits.name = name.substr(prefix.size());
    }
    cudnn::Plans found = cudnn::attention_plans(graph, limits);
    if (why_none.empty()) why_none = found.why_not;
    for (auto& plan : found.plans) candidates.push_back({*slice, repeats, std::move(plan)});
  };
  const std::int64_t keys = (d.seq + tile - 1) / tile * tile;
  if (!backward) {
    add(true, 0, 3);
  } else {
    add(true, d.heads * keys * keys * 2, 2);
    if (d.seq > tile && !by_heuristics())
      add(false, d.heads * keys * d.head_dim * static_cast<std::int64_t>(sizeof(float)), 2);
  }
  return candidates;
}

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
  if (const std::string reason = refusal(d); !reason.empty()) return Made<Base>::no(reason);
  static auto& known = *new KnownChoices<cudnn::AttentionGraph, Candidate>;
  const auto op_by = [&](const Candidate& candidate) {
    return std::make_unique<Op>(device, d, candidate, has_masked_tail(d, backward), architecture);
  };
  std::string why_none;
  const auto named = [&](const std::string& name) -> std::optional<Candidate> {
    const std::vector<Candidate> candidates = candidates_of(d, backward, why_none, name);
    return candidates.empty() ? std::nullopt : std::optional(candidates[0]);
  };
  const auto search = [&]() -> std::optional<Candidate> {
    why_none.clear();
    std::vector<Candidate> candidates = candidates_of(d, backward, why_none);
    if (candidates.size() < 2) return candidates.empty() ? std::nullopt : std::optional(candidates[0]);
    std::vector<std::unique_ptr<Op>> ops;
    std::size_t scratch = 0;
    for (const Candidate& candidate : candidates) {
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
  const auto choice = known.find(device, graph_of(d, backward), named, search);
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
