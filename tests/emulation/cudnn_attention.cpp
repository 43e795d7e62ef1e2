// Stand-in of cuDNN's attention: the oracle's, with cuDNN's quirks. Masked queries' rows are NaN, as are the last
// queries' gradients if a tile of 128 keys has a tail that no lengths mask; a backward pass rejects scratch behind sums
// of rows that do not fill a multiple of 16 bytes; there is no engine for heads whose width is not a multiple of 16, so
// products and softmax run for those. A backward pass in any order gives dq other last bits each time. Scripted:
// cudnn=absent has no engines, with cudnn=refuses plans are built but do not run, with cudnn=any_order all backward
// passes sum in any order.
#include "harness/core/error.h"
#include "harness/device/cuda/check.h"
#include "tests/emulation/cudnn_tensors.h"
#include "tests/emulation/runtime.h"
#include "tests/oracle/oracle.h"
#include "workloads/ops/backend.h"
#include "workloads/ops/cuda/cudnn/graphs.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace assay::ops::cudnn {

namespace {

class EmulatedAttention final : public Plan {
 public:
  EmulatedAttention(const AttentionGraph& graph, bool repeats)
      : d_(graph), repeats_(repeats), refuses_(emulation::scripted("cudnn") == "refuses") {}

  std::string name() const override { return repeats_ ? "emulated attention" : "emulated attention in any order"; }
  std::size_t workspace_bytes() const override { return 1000; }

  void run(cudaStream_t stream, std::span<const Operand> operands, void* workspace) const override {
    if (refuses_) throw RunError("emulated cuDNN: this plan does not run");
    if (d_.backward && d_.batch * d_.heads * d_.seq % 4 != 0)
      throw Error(fmt::format("emulated cuDNN: scratch behind sums of {} rows", d_.batch * d_.heads * d_.seq));
    Places at{};
    for (const Operand& operand : operands) {
      const std::size_t alignment =
          operand.id == attention_log_sum_exp || operand.id == attention_lengths ? sizeof(float) : 16;
      if (!emulation::known_to_device(operand.data) || reinterpret_cast<std::uintptr_t>(operand.data) % alignment != 0)
        throw Error(fmt::format("emulated cuDNN: tensor {} is not aligned device memory", operand.id));
      at[static_cast<std::size_t>(operand.id)] = operand.data;
    }
    const std::size_t wanted = (d_.backward ? 9u : 5u) + (d_.lengths ? 1u : 0u);
    if (operands.size() != wanted)
      throw Error(fmt::format("emulated cuDNN: {} tensors in place of {}", operands.size(), wanted));
    ASSAY_CUDA(emulation::enqueue(stream, [=, this] { attend(at, workspace); }));
  }

 private:
  using Places = std::array<void*, 11>;  // by id

  AttentionDesc desc() const {
    AttentionDesc desc;
    desc.batch = d_.batch;
    desc.seq = d_.seq;
    desc.heads = d_.heads;
    desc.kv_heads = d_.kv_heads;
    desc.head_dim = d_.head_dim;
    desc.causal = d_.causal;
    desc.lengths = d_.lengths;
    desc.scale = static_cast<double>(d_.scale);
    desc.q_stride = d_.q_stride;
    desc.k_stride = d_.k_stride;
    desc.v_stride = d_.v_stride;
    desc.dtype = d_.dtype;
    return desc;
  }

  void attend(const Places& at, void* workspace) const {
    static const std::shared_ptr<Backend> oracle = make_reference_backend();
    std::memset(workspace, 0xff, workspace_bytes());
    const auto* lengths = static_cast<const std::int32_t*>(at[attention_lengths]);
    NoStream stream;
    if (!d_.backward) {
      const auto op = oracle->make<AttentionForward>(desc()).take();
      std::vector<double> scratch(op->workspace_bytes() / sizeof(double) + 1);
      op->run(stream, {.q = at[attention_q],
                       .k = at[attention_k],
                       .v = at[attention_v],
                       .lengths = lengths,
                       .out = at[attention_out],
                       .log_sum_exp = at[attention_log_sum_exp],
                       .workspace = scratch.data()});
      if (!d_.lengths) return;
      spoil_masked(at[attention_out], d_.heads, d_.heads * d_.head_dim, lengths);
      auto* sums = static_cast<float*>(at[attention_log_sum_exp]);
      for (std::int64_t row = 0; row < d_.batch * d_.heads; ++row)
        for (std::int64_t t = lengths[row / d_.heads]; t < d_.seq; ++t) spoil(sums + row * d_.seq + t, sizeof(float));
      return;
    }
    const auto op = oracle->make<AttentionBackward>(desc()).take();
    std::vector<double> scratch(op->workspace_bytes() / sizeof(double) + 1);
    op->run(stream, {.q = at[attention_q],
                     .k = at[attention_k],
                     .v = at[attention_v],
                     .lengths = lengths,
                     .out = at[attention_out],
                     .dout = at[attention_dout],
                     .log_sum_exp = at[attention_log_sum_exp],
                     .dq = at[attention_dq],
                     .dk = at[attention_dk],
                     .dv = at[attention_dv],
                     .workspace = scratch.data()});
    if (!repeats_) reorder(at[attention_dq]);
    if (d_.lengths) {
      spoil_masked(at[attention_dq], d_.heads, d_.q_stride, lengths);
      spoil_masked(at[attention_dk], d_.kv_heads, d_.k_stride, lengths);
      spoil_masked(at[attention_dv], d_.kv_heads, d_.v_stride, lengths);
    } else if (d_.seq % 128 != 0) {
      spoil(token(at[attention_dq], d_.batch * d_.seq - 1, d_.q_stride), size_of(d_.dtype));
    }
  }

  void* token(void* base, std::int64_t index, std::int64_t stride) const {
    return static_cast<char*>(base) + index * stride * static_cast<std::int64_t>(size_of(d_.dtype));
  }
  // As if each token's terms were added in a different order each run.
  void reorder(void* dq) const {
    static std::atomic<std::uint32_t> runs = 0;
    const std::int64_t first = runs++ * 2654435769u >> 28;
    for (std::int64_t t = 0; t < d_.batch * d_.seq; ++t) {
      auto* bits = static_cast<std::uint16_t*>(token(dq, t, d_.q_stride));
      for (std::int64_t i = first; i < d_.heads * d_.head_dim; i += 16) bits[i] ^= 1;
    }
  }
  static void spoil(void* at, std::size_t bytes) { std::memset(at, 0xff, bytes); }
  void spoil_masked(void* base, std::int64_t heads, std::int64_t stride, const std::int32_t* lengths) const {
    for (std::int64_t b = 0; b < d_.batch; ++b)
      for (std::int64_t t = lengths[b]; t < d_.seq; ++t)
        spoil(token(base, b * d_.seq + t, stride), static_cast<std::size_t>(heads * d_.head_dim) * size_of(d_.dtype));
  }

  AttentionGraph d_;
  bool repeats_, refuses_;
};

}  // namespace

Plans attention_plans(const AttentionGraph& d, const Limits& limits) {
  if (emulation::scripted("cudnn") == "absent" || d.head_dim % 16 != 0)
    return {{}, fmt::format("{}: no engine for heads of {}", version(), d.head_dim)};
  if (emulation::scripted("cudnn") == "any_order" && d.backward && limits.deterministic)
    return {{}, fmt::format("{}: no engine that repeats its bits", version())};
  return offered({std::make_shared<EmulatedAttention>(d, limits.deterministic)}, limits);
}

}  // namespace assay::ops::cudnn
