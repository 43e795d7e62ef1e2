// Convolutions by cuDNN, NHWC. The plan is chosen when an op is made, by a trial on random data, and remembered
// (known_choices.h). Around it: weights are cast to the op's type, channels padded for tensor cores and cropped again,
// gradients accumulated.
#include "harness/core/error.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/conv_choice.h"
#include "workloads/ops/cuda/convert_rows.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/trial.h"
#include "workloads/ops/descriptors.h"
#include "workloads/ops/round_up.h"

#include <algorithm>
#include <array>
#include <optional>

namespace assay::ops {

namespace {

using cudnn::ConvolutionPass;

// One of the convolution's arrays, in the caller's layout and in the plan's.
struct Array {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  DType dtype = DType::f32;
  std::int64_t plan_rows = 0;
  std::int64_t plan_width = 0;
  DType plan_dtype = DType::f32;

  bool same() const { return rows == plan_rows && width == plan_width && dtype == plan_dtype; }
  std::size_t plan_bytes() const { return static_cast<std::size_t>(plan_rows * plan_width) * size_of(plan_dtype); }
  std::size_t bytes() const { return static_cast<std::size_t>(rows * width) * size_of(dtype); }
  Rows outside(const void* data) const { return {const_cast<void*>(data), dtype, rows, width}; }
  Rows inside(const void* data) const { return {const_cast<void*>(data), plan_dtype, plan_rows, plan_width}; }
};

// Images of `pixels`, of which only the channels differ.
Array images(std::int64_t pixels, std::int64_t channels, std::int64_t plan_channels, DType dtype) {
  return {.rows = pixels,
          .width = channels,
          .dtype = storage_type(dtype),
          .plan_rows = pixels,
          .plan_width = plan_channels,
          .plan_dtype = storage_type(dtype)};
}

template <typename Base>
class CudaConv : public Base {
 public:
  CudaConv(Device& device, const ConvDesc& d, ConvChoice choice)
      : capability_(device.info().compute_capability),
        choice_(std::move(choice)),
        x_(images(d.n * d.h * d.w, d.c, choice_.graph.c, d.dtype)),
        y_(images(d.n * d.p() * d.q(), d.k, choice_.graph.k, d.dtype)),
        w_{.rows = d.k * d.r * d.s,
           .width = d.c / d.groups,
           .dtype = storage_type(d.pack_from),
           .plan_rows = choice_.graph.k * d.r * d.s,
           .plan_width = choice_.graph.c / d.groups,
           .plan_dtype = storage_type(choice_.graph.weights())} {}

  std::string implementation() const override { return "cuDNN"; }
  std::string choice() const override {
    const auto& graph = choice_.graph;
    const bool padded = !x_.same() || !y_.same();
    const bool rounded =
        size_of(graph.weights()) < size_of(w_.dtype) && graph.pass == ConvolutionPass::backward_weights;
    return fmt::format(
        "{}{}{}{}", choice_.plan->name(), padded ? fmt::format(" ({} to {} channels)", graph.c, graph.k) : "",
        rounded ? fmt::format(" (rounded to {})", name_of(graph.weights())) : "", choice_.tried ? "" : " (untried)");
  }
  std::string isa() const override { return fmt::format("sm_{}", capability_); }

  // The plan's own workspace is last.
  std::size_t workspace_bytes() const override {
    return aligned_size(x_bytes()) + aligned_size(y_bytes()) + aligned_size(w_bytes()) +
           choice_.plan->workspace_bytes();
  }

 protected:
  // Sizes of the plan's arrays in the workspace.
  std::size_t x_bytes() const { return x_.same() ? 0 : x_.plan_bytes(); }
  std::size_t y_bytes() const { return y_.same() ? 0 : y_.plan_bytes(); }
  virtual std::size_t w_bytes() const { return 0; }
  void* x_place(void* workspace) const { return workspace; }
  void* y_place(void* workspace) const { return static_cast<char*>(workspace) + aligned_size(x_bytes()); }
  void* w_place(void* workspace) const { return static_cast<char*>(y_place(workspace)) + aligned_size(y_bytes()); }

  // The caller's array in the plan's layout, copied to `place` if they differ.
  static const void* padded(const Array& array, const void* data, void* place, cudaStream_t stream) {
    if (array.same()) return data;
    convert_rows(array.outside(data), array.inside(place), false, stream);
    return place;
  }
  void run_plan(cudaStream_t stream, const void* x, const void* w, const void* y, void* workspace) const {
    const std::array operands = {cudnn::operand(cudnn::convolution_x, x), cudnn::operand(cudnn::convolution_w, w),
                                 cudnn::operand(cudnn::convolution_y, y)};
    choice_.plan->run(stream, operands, static_cast<char*>(w_place(workspace)) + aligned_size(w_bytes()));
  }

  int capability_;
  ConvChoice choice_;
  Array x_, y_, w_;
};

// Packs weights into the plan's type and padding; weights that have them already are used in place.
template <typename Base>
class CudaConvWithWeights : public CudaConv<Base> {
 public:
  using CudaConv<Base>::CudaConv;

  std::size_t packed_bytes() const override { return this->w_.same() ? 0 : this->w_.plan_bytes(); }
  void pack(Stream& stream, const void* w, void* packed) override {
    convert_rows(this->w_.outside(w), this->w_.inside(packed), false, cuda::native(stream));
  }
};

class CudaConvForward final : public CudaConvWithWeights<ConvForward> {
 public:
  using CudaConvWithWeights::CudaConvWithWeights;

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t native = cuda::native(stream);
    const void* x = padded(x_, args.x, x_place(args.workspace), native);
    void* y = y_.same() ? args.y : y_place(args.workspace);
    run_plan(native, x, args.packed, y, args.workspace);
    if (!y_.same()) convert_rows(y_.inside(y), y_.outside(args.y), false, native);
  }
  void try_out(Stream& stream, void* x, void* w, void* y, void* workspace) {
    run(stream, {.x = x, .packed = w, .y = y, .workspace = workspace});
  }
};

class CudaConvBackwardData final : public CudaConvWithWeights<ConvBackwardData> {
 public:
  using CudaConvWithWeights::CudaConvWithWeights;

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t native = cuda::native(stream);
    const void* dy = padded(y_, args.dy, y_place(args.workspace), native);
    void* dx = x_.same() ? args.dx : x_place(args.workspace);
    run_plan(native, dx, args.packed, dy, args.workspace);
    if (!x_.same()) convert_rows(x_.inside(dx), x_.outside(args.dx), false, native);
  }
  void try_out(Stream& stream, void* x, void* w, void* y, void* workspace) {
    run(stream, {.dy = y, .packed = w, .dx = x, .workspace = workspace});
  }
};

class CudaConvBackwardWeights final : public CudaConv<ConvBackwardWeights> {
 public:
  CudaConvBackwardWeights(Device& device, const ConvDesc& desc, ConvChoice choice)
      : CudaConv(device, desc, std::move(choice)), accumulate_(desc.accumulate) {
    w_.dtype = storage_type(desc.gradient);
  }

  void run(Stream& stream, const Args& args) override {
    const cudaStream_t native = cuda::native(stream);
    const void* x = padded(x_, args.x, x_place(args.workspace), native);
    const void* dy = padded(y_, args.dy, y_place(args.workspace), native);
    void* dw = direct() ? args.dw : w_place(args.workspace);
    run_plan(native, x, dw, dy, args.workspace);
    if (!direct()) convert_rows(w_.inside(dw), w_.outside(args.dw), accumulate_, native);
  }
  void try_out(Stream& stream, void* x, void* w, void* y, void* workspace) {
    run(stream, {.x = x, .dy = y, .dw = w, .workspace = workspace});
  }

 private:
  bool direct() const { return w_.same() && !accumulate_; }
  std::size_t w_bytes() const override { return direct() ? 0 : w_.plan_bytes(); }

  bool accumulate_;
};

// Empty if the device has no memory left for a trial.
template <typename Op>
TryOut<Op> trial_of(Device& device, Stream& stream, const ConvDesc& d, const std::vector<std::unique_ptr<Op>>& ops) {
  const DType dtype = storage_type(d.dtype);
  std::size_t workspace = 0, weights = static_cast<std::size_t>(d.k * d.r * d.s * d.c / d.groups) * sizeof(float);
  for (const auto& op : ops) {
    workspace = std::max(workspace, op->workspace_bytes());
    if constexpr (requires { op->packed_bytes(); }) weights = std::max(weights, op->packed_bytes());
  }
  try {
    const auto arrays = std::make_shared<TrialArrays>(device, stream, workspace);
    void* const x = arrays->array(dtype, d.n * d.h * d.w * d.c, "x");
    void* const w = arrays->array(dtype, static_cast<std::int64_t>(weights / size_of(dtype)), "w");
    void* const y = arrays->array(dtype, d.n * d.p() * d.q() * d.k, "y");
    return [=, &stream](Op& op) { op.try_out(stream, x, w, y, arrays->workspace()); };
  } catch (const Error&) {
    return nullptr;
  }
}

std::string problem(const ConvDesc& d) {
  const auto known = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::fp16; };
  for (const DType dtype : {storage_type(d.dtype), d.pack_from, d.gradient})
    if (!known(dtype))
      return fmt::format("the cuda backend's convolution is for f32, tf32, bf16 and fp16, not {}", name_of(dtype));
  for (const DType dtype : {d.pack_from, d.gradient})
    if (dtype != DType::f32 && dtype != storage_type(d.dtype))
      return fmt::format("the cuda backend has no convolution of {} with weights or gradients of {}", name_of(d.dtype),
                         name_of(dtype));
  return {};
}

// The fastest candidate by trial, the first if the device has no memory for one, nothing and the reason if none runs.
template <typename Op>
std::optional<ConvChoice> fastest_choice(Device& device, const ConvDesc& desc, ConvolutionPass pass,
                                         std::string& why_none) {
  ConvCandidates candidates = conv_candidates(desc, pass);
  std::vector<ConvChoice>& choices = candidates.choices;
  why_none = candidates.why_none;
  if (choices.size() < 2) return choices.empty() ? std::nullopt : std::optional(choices[0]);
  std::vector<std::unique_ptr<Op>> ops;
  for (const ConvChoice& choice : choices) ops.push_back(std::make_unique<Op>(device, desc, choice));
  const auto stream = device.make_stream();
  const TryOut<Op> run = trial_of(device, *stream, desc, ops);
  if (!run) {
    choices[0].tried = false;
    return choices[0];
  }
  if (const auto best = fastest(device, *stream, ops, run)) return choices[*best];
  why_none = fmt::format("{} could run none of its {} plans", cudnn::version(), ops.size());
  return std::nullopt;
}

template <typename Interface, typename Op>
Made<Interface> make(Device& device, const ConvDesc& desc, ConvolutionPass pass) {
  if (auto why = problem(desc); !why.empty()) return Made<Interface>::no(std::move(why));
  std::string why_none;
  const auto choice = find_choice(device, desc, pass, [&] { return fastest_choice<Op>(device, desc, pass, why_none); });
  if (!choice) return Made<Interface>::no(why_none);
  return std::unique_ptr<Interface>(std::make_unique<Op>(device, desc, *choice));
}

}  // namespace

template <>
Made<ConvForward> make_cuda(Device& device, const ConvDesc& desc) {
  return make<ConvForward, CudaConvForward>(device, desc, ConvolutionPass::forward);
}

template <>
Made<ConvBackwardData> make_cuda(Device& device, const ConvDesc& desc) {
  return make<ConvBackwardData, CudaConvBackwardData>(device, desc, ConvolutionPass::backward_data);
}

template <>
Made<ConvBackwardWeights> make_cuda(Device& device, const ConvDesc& desc) {
  return make<ConvBackwardWeights, CudaConvBackwardWeights>(device, desc, ConvolutionPass::backward_weights);
}

}  // namespace assay::ops
