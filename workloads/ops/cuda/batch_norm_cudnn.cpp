// Batch norm by our own kernels or by cuDNN. cuDNN does not promise that outputs may alias inputs, so its backward pass
// does not work in place.
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/convert_rows.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/own_kernels.h"
#include "workloads/ops/cuda/own_or_cudnn.h"
#include "workloads/ops/cuda/supported_types.h"

namespace assay::ops {

namespace {

class CudnnBatchNormForward final : public CudnnOp<BatchNormForward> {
 public:
  CudnnBatchNormForward(Device& device, const BatchNormDesc& desc, OwnOrCudnn choice)
      : CudnnOp(own_batch_norm_forward(device, desc), std::move(choice)), d_(desc) {}

  void run(Stream& stream, const Args& args) override {
    if (!plan_accepts({args.x, args.residual, args.scale, args.shift, args.running_mean, args.running_variance, args.y,
                       args.saved_mean, args.saved_inverse_deviation}))
      return own_->run(stream, args);
    using cudnn::operand;
    const cudaStream_t native = cuda::native(stream);
    std::vector<cudnn::Operand> operands = {
        operand(cudnn::batch_norm_x, args.x), operand(cudnn::batch_norm_scale, args.scale),
        operand(cudnn::batch_norm_shift, args.shift), operand(cudnn::batch_norm_y, args.y)};
    if (d_.residual) operands.push_back(operand(cudnn::batch_norm_residual, args.residual));
    if (d_.training) {
      // cuDNN reads running statistics in one place and writes them to another: update them from a copy, or, if they
      // must stay, from and to scratch.
      char* const scratch = static_cast<char*>(args.workspace) + plan_bytes();
      const auto place = [&](std::size_t i) -> void* { return scratch + i * statistic_bytes(); };
      if (args.update_running) {
        copy(place(0), args.running_mean, native);
        copy(place(1), args.running_variance, native);
      }
      operands.push_back(operand(cudnn::batch_norm_running_mean, place(0)));
      operands.push_back(operand(cudnn::batch_norm_running_variance, place(1)));
      operands.push_back(operand(cudnn::batch_norm_next_mean, args.update_running ? args.running_mean : place(2)));
      operands.push_back(
          operand(cudnn::batch_norm_next_variance, args.update_running ? args.running_variance : place(3)));
      operands.push_back(operand(cudnn::batch_norm_saved_mean, args.saved_mean));
      operands.push_back(operand(cudnn::batch_norm_saved_inverse_deviation, args.saved_inverse_deviation));
    } else {
      operands.push_back(operand(cudnn::batch_norm_running_mean, args.running_mean));
      operands.push_back(operand(cudnn::batch_norm_running_variance, args.running_variance));
    }
    plan_->run(native, operands, args.workspace);
  }

 private:
  std::size_t channel_bytes() const { return static_cast<std::size_t>(d_.channels) * sizeof(float); }
  std::size_t statistic_bytes() const { return (channel_bytes() + 15) / 16 * 16; }
  std::size_t scratch_bytes() const override { return d_.training ? 4 * statistic_bytes() : 0; }
  void copy(void* to, const void* from, cudaStream_t stream) const {
    ASSAY_CUDA(cudaMemcpyAsync(to, from, channel_bytes(), cudaMemcpyDeviceToDevice, stream));
  }

  BatchNormDesc d_;
};

class CudnnBatchNormBackward final : public CudnnOp<BatchNormBackward> {
 public:
  CudnnBatchNormBackward(Device& device, const BatchNormDesc& desc, OwnOrCudnn choice)
      : CudnnOp(own_batch_norm_backward(device, desc), std::move(choice)), d_(desc) {}

  bool in_place() const override { return !plan_; }

  void run(Stream& stream, const Args& args) override {
    if (!plan_accepts({args.dy, args.dy_other, args.x, d_.relu ? args.y : nullptr, args.scale, args.saved_mean,
                       args.saved_inverse_deviation, args.dx, d_.residual ? args.dresidual : nullptr, args.dscale,
                       args.dshift}))
      return own_->run(stream, args);
    using cudnn::operand;
    const cudaStream_t native = cuda::native(stream);
    // cuDNN overwrites the parameters' gradients; to accumulate, it writes to the workspace first.
    char* const scratch = static_cast<char*>(args.workspace) + plan_bytes();
    void* const dscale = d_.accumulate ? scratch : args.dscale;
    void* const dshift = d_.accumulate ? scratch + gradient_bytes() : args.dshift;
    std::vector<cudnn::Operand> operands = {
        operand(cudnn::batch_norm_dy, args.dy),
        operand(cudnn::batch_norm_x, args.x),
        operand(cudnn::batch_norm_scale, args.scale),
        operand(cudnn::batch_norm_saved_mean, args.saved_mean),
        operand(cudnn::batch_norm_saved_inverse_deviation, args.saved_inverse_deviation),
        operand(cudnn::batch_norm_dx, args.dx),
        operand(cudnn::batch_norm_dscale, dscale),
        operand(cudnn::batch_norm_dshift, dshift)};
    if (d_.residual) {
      operands.push_back(operand(cudnn::batch_norm_y, args.y));
      operands.push_back(operand(cudnn::batch_norm_dresidual, args.dresidual));
    }
    if (d_.two_gradients) operands.push_back(operand(cudnn::batch_norm_dy_other, args.dy_other));
    plan_->run(native, operands, args.workspace);
    if (!d_.accumulate) return;
    convert_rows(row(dscale), row(args.dscale), true, native);
    convert_rows(row(dshift), row(args.dshift), true, native);
  }

 private:
  Rows row(void* data) const { return {data, DType::f32, 1, d_.channels}; }
  std::size_t gradient_bytes() const { return (static_cast<std::size_t>(d_.channels) * sizeof(float) + 15) / 16 * 16; }
  std::size_t scratch_bytes() const override { return d_.accumulate ? 2 * gradient_bytes() : 0; }

  BatchNormDesc d_;
};

OwnOrCudnnTrial<BatchNormForward> trial_of_forward(Device& device, const BatchNormDesc& d, Stream& stream,
                                                   std::size_t workspace) {
  const auto arrays = std::make_shared<TrialArrays>(device, stream, workspace);
  const std::int64_t elements = d.rows * d.channels;
  BatchNormForward::Args args;
  args.x = arrays->array(d.dtype, elements, "x");
  if (d.residual) args.residual = arrays->array(d.dtype, elements, "residual");
  args.y = arrays->array(d.dtype, elements, "y");
  args.scale = arrays->array_near(1, d.channels, "scale");
  args.shift = arrays->array_near(0, d.channels, "shift");
  args.running_mean = arrays->array_near(0, d.channels, "running mean");
  args.running_variance = arrays->array_near(1, d.channels, "running variance");
  if (d.training) args.saved_mean = arrays->array_near(0, d.channels, "mean");
  if (d.training) args.saved_inverse_deviation = arrays->array_near(1, d.channels, "inverse deviation");
  args.workspace = arrays->workspace();
  const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::batch_norm_forward, d.dtype, out, d.rows); };
  arrays->compare("y", args.y, d.dtype, elements, tolerance(d.dtype));
  if (d.training)
    for (const auto& [name, data] :
         {std::pair{"mean", args.saved_mean}, std::pair{"inverse deviation", args.saved_inverse_deviation},
          std::pair{"running mean", args.running_mean}, std::pair{"running variance", args.running_variance}})
      arrays->compare(name, data, DType::f32, d.channels, tolerance(DType::f32));
  return {arrays, [args, &stream](BatchNormForward& op) { op.run(stream, args); }};
}

OwnOrCudnnTrial<BatchNormBackward> trial_of_backward(Device& device, const BatchNormDesc& d, Stream& stream,
                                                     std::size_t workspace) {
  const auto arrays = std::make_shared<TrialArrays>(device, stream, workspace);
  const std::int64_t elements = d.rows * d.channels;
  BatchNormBackward::Args args;
  args.dy = arrays->array(d.dtype, elements, "dy");
  if (d.two_gradients) args.dy_other = arrays->array(d.dtype, elements, "other dy");
  args.x = arrays->array(d.dtype, elements, "x");
  if (d.relu) args.y = arrays->array(d.dtype, elements, "y");
  args.scale = arrays->array_near(1, d.channels, "scale");
  args.shift = arrays->array_near(0, d.channels, "shift");
  args.saved_mean = arrays->array_near(0, d.channels, "mean");
  args.saved_inverse_deviation = arrays->array_near(1, d.channels, "inverse deviation");
  args.dx = arrays->array(d.dtype, elements, "dx");
  if (d.residual) args.dresidual = arrays->array(d.dtype, elements, "dresidual");
  args.dscale = arrays->array_near(1, d.channels, "dscale");
  args.dshift = arrays->array_near(1, d.channels, "dshift");
  args.workspace = arrays->workspace();
  const auto tolerance = [&](DType out, double cancelled = 0) {
    return tolerance_of(OpGroup::batch_norm_backward, d.dtype, out, d.rows, cancelled);
  };
  // dx is dy, of size 1, minus its projections on 1 and on x, which nearly cancels with few rows.
  arrays->compare("dx", args.dx, d.dtype, elements, tolerance(d.dtype, 1));
  if (d.residual) arrays->compare("dresidual", args.dresidual, d.dtype, elements, tolerance(d.dtype));
  arrays->compare("dscale", args.dscale, DType::f32, d.channels, tolerance(DType::f32));
  arrays->compare("dshift", args.dshift, DType::f32, d.channels, tolerance(DType::f32));
  return {arrays, [args, &stream](BatchNormBackward& op) { op.run(stream, args); }};
}

}  // namespace

template <>
Made<BatchNormForward> make_cuda(Device& device, const BatchNormDesc& d) {
  if (auto why = unless_f32_bf16_or_fp16("batch norm", {d.dtype}); !why.empty())
    return Made<BatchNormForward>::no(std::move(why));
  const cudnn::BatchNormGraph graph = cudnn::batch_norm_graph_of(d);
  return own_or_cudnn<BatchNormForward>(
      device, graph, cudnn::batch_norm_forward_plans, [&] { return own_batch_norm_forward(device, d); },
      [&](const OwnOrCudnn& choice) { return std::make_unique<CudnnBatchNormForward>(device, d, choice); },
      [&](Stream& stream, std::size_t workspace) { return trial_of_forward(device, d, stream, workspace); });
}

template <>
Made<BatchNormBackward> make_cuda(Device& device, const BatchNormDesc& d) {
  if (!d.training) return Made<BatchNormBackward>::no("batch norm has no backward pass in evaluation");
  if (auto why = unless_f32_bf16_or_fp16("batch norm", {d.dtype}); !why.empty())
    return Made<BatchNormBackward>::no(std::move(why));
  const auto graph = cudnn::batch_norm_gradient_graph_of(d);
  if (!graph) return own_batch_norm_backward(device, d);
  return own_or_cudnn<BatchNormBackward>(
      device, *graph, cudnn::batch_norm_backward_plans, [&] { return own_batch_norm_backward(device, d); },
      [&](const OwnOrCudnn& choice) { return std::make_unique<CudnnBatchNormBackward>(device, d, choice); },
      [&](Stream& stream, std::size_t workspace) { return trial_of_backward(device, d, stream, workspace); });
}

}  // namespace assay::ops
