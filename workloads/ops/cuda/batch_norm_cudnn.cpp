// Batch norm forward by an own kernel or by cuDNN. Backward is an own kernel alone: its outputs may lie over its
// inputs, as models have them, which no graph of cuDNN promises to bear.
#include "harness/device/cuda/check.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/cudnn/batch_norm.h"
#include "workloads/ops/cuda/own_kernels.h"
#include "workloads/ops/cuda/own_or_cudnn.h"
#include "workloads/ops/cuda/supported_types.h"

namespace assay::ops {

namespace {

class CudnnBatchNormForward final : public CudnnOp<BatchNormForward> {
 public:
  CudnnBatchNormForward(Device& device, const BatchNormDesc& desc, std::shared_ptr<cudnn::Plan> plan)
      : CudnnOp(own_batch_norm_forward(device, desc), std::move(plan)), d_(desc) {}

  void run(Stream& stream, const Args& args) override {
    if (!on_16_bytes({args.x, args.residual, args.scale, args.shift, args.running_mean, args.running_variance, args.y,
                      args.saved_mean, args.saved_inverse_deviation}))
      return own_->run(stream, args);
    using cudnn::operand;
    const cudaStream_t native = cuda::native(stream);
    std::vector<cudnn::Operand> operands = {
        operand(cudnn::batch_norm_x, args.x), operand(cudnn::batch_norm_scale, args.scale),
        operand(cudnn::batch_norm_shift, args.shift), operand(cudnn::batch_norm_y, args.y)};
    if (d_.residual) operands.push_back(operand(cudnn::batch_norm_residual, args.residual));
    if (d_.training) {
      // It reads running statistics in one place and writes them in another: they are moved from a copy, or where they
      // are to stay, from anything to anywhere.
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

// Random arrays for the ops of one descriptor.
TryOut<BatchNormForward> trial_of(Device& device, const BatchNormDesc& d, Stream& stream, std::size_t workspace) {
  const std::int64_t count = d.rows * d.channels;
  auto buffers = std::make_shared<std::vector<Buffer>>();
  const auto array = [&](DType dtype, std::int64_t elements, const char* purpose) -> void* {
    buffers->push_back(random_array(device, stream, dtype, elements, purpose));
    return buffers->back().data();
  };
  const auto statistic = [&](const char* purpose) { return array(DType::f32, d.channels, purpose); };
  BatchNormForward::Args args;
  args.x = array(d.dtype, count, "x");
  if (d.residual) args.residual = array(d.dtype, count, "residual");
  args.y = array(d.dtype, count, "y");
  args.scale = statistic("scale");
  args.shift = statistic("shift");
  args.running_mean = statistic("running mean");
  args.running_variance = statistic("running variance");
  if (d.training) args.saved_mean = statistic("mean");
  if (d.training) args.saved_inverse_deviation = statistic("inverse deviation");
  buffers->push_back(device.allocate(workspace));
  args.workspace = buffers->back().data();
  return [buffers, args, &stream](BatchNormForward& op) { op.run(stream, args); };
}

}  // namespace

Made<BatchNormForward> make_cuda_batch_norm_forward(Device& device, const BatchNormDesc& d) {
  if (auto why = unless_f32_bf16_or_fp16("batch norm", {d.dtype}); !why.empty())
    return Made<BatchNormForward>::no(std::move(why));
  const cudnn::BatchNormGraph graph{.rows = d.rows,
                                    .channels = d.channels,
                                    .dtype = d.dtype,
                                    .relu = d.relu,
                                    .residual = d.residual,
                                    .training = d.training,
                                    .epsilon = static_cast<float>(d.epsilon),
                                    .momentum = static_cast<float>(d.momentum)};
  return own_or_cudnn<BatchNormForward>(
      device, graph, cudnn::batch_norm_forward_plans, [&] { return own_batch_norm_forward(device, d); },
      [&](const std::shared_ptr<cudnn::Plan>& plan) {
        return std::make_unique<CudnnBatchNormForward>(device, d, plan);
      },
      [&](Stream& stream, std::size_t workspace) { return trial_of(device, d, stream, workspace); });
}

}  // namespace assay::ops
