// Average pooling forward by our own kernel or by cuDNN. The rest uses our own kernels only: cuDNN's front end has no
// pooling gradient, and it does not document where it saves the index of a maximum, nor which of equal ones it takes.
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/cuda_ops.h"
#include "workloads/ops/cuda/cudnn/pool.h"
#include "workloads/ops/cuda/own_kernels.h"
#include "workloads/ops/cuda/own_or_cudnn.h"

#include <array>

namespace assay::ops {

namespace {

class CudnnAveragePool final : public CudnnOp<PoolForward> {
 public:
  using CudnnOp::CudnnOp;

  void run(Stream& stream, const Args& args) override {
    if (!plan_accepts({args.x, args.y})) return own_->run(stream, args);
    plan_->run(cuda::native(stream),
               std::array{cudnn::operand(cudnn::pool_x, args.x), cudnn::operand(cudnn::pool_y, args.y)},
               args.workspace);
  }
};

OwnOrCudnnTrial<PoolForward> trial_of(Device& device, const PoolDesc& d, Stream& stream, std::size_t workspace) {
  const auto arrays = std::make_shared<TrialArrays>(device, stream, workspace);
  PoolForward::Args args;
  args.x = arrays->array(d.dtype, d.n * d.h * d.w * d.c, "x");
  const std::int64_t pixels = d.n * d.p() * d.q();
  args.y = arrays->array(d.dtype, pixels * d.c, "y");
  args.workspace = arrays->workspace();
  arrays->compare("y", args.y, d.dtype, pixels * d.c,
                  tolerance_of(OpGroup::pool, d.dtype, d.dtype, d.window_h * d.window_w));
  return {arrays, [args, &stream](PoolForward& op) { op.run(stream, args); }};
}

}  // namespace

template <>
Made<PoolForward> make_cuda(Device& device, const PoolDesc& d) {
  if (auto why = own_pool_problem(d); !why.empty()) return Made<PoolForward>::no(std::move(why));
  if (d.kind == PoolKind::maximum) return own_pool_forward(device, d);
  return own_or_cudnn<PoolForward>(
      device, d, cudnn::average_pool_plans, [&] { return own_pool_forward(device, d); },
      [&](const OwnOrCudnn& choice) { return std::make_unique<CudnnAveragePool>(own_pool_forward(device, d), choice); },
      [&](Stream& stream, std::size_t workspace) { return trial_of(device, d, stream, workspace); });
}

}  // namespace assay::ops
