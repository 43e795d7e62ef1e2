// Batch norm and average pooling between own kernels and cuDNN: which does an op, and that it does it right. On the
// emulation alone, whose cuDNN is faster than any kernel; its script has it without engines
// (ASSAY_EMULATION=cudnn=absent) or with plans that do not run (cudnn=refuses).
#include "tests/parity/frame.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace assay::ops::parity {
namespace {

using testing::StartsWith;

class CudnnChoice : public testing::Test {
 protected:
  void SetUp() override {
    try {
      if (make_device(DeviceKind::cuda, 0)->info().emulated) return;
    } catch (const std::exception&) {
    }
    GTEST_SKIP() << "this is not the emulation";
  }

  static void expect_choice(const std::string& implementation) {
    const char* script = std::getenv("ASSAY_EMULATION");
    const bool offers = !script || std::string_view(script).find("cudnn=") == std::string_view::npos;
    EXPECT_THAT(implementation, StartsWith(offers ? "emulated cuDNN" : "assay:"));
  }
};

TEST_F(CudnnChoice, BatchNorm) {
  const BatchNormDesc d{.rows = 2000, .channels = 64, .dtype = DType::bf16, .relu = true};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(DeviceKind::cuda, &Backend::batch_norm_forward, d, [&](Side& side, BatchNormForward& op) -> Outputs {
    if (side.backend().name() == "cuda") expect_choice(op.implementation());
    const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::batch_norm_forward, d.dtype, out, d.rows); };
    const auto statistic = [&](const char* purpose) {
      return side.put(Tensor::normal(DType::f32, d.channels, purpose, 0.1, 1));
    };
    BatchNormForward::Args args;
    args.x = side.put(Tensor::normal(d.dtype, count, "x"));
    args.scale = statistic("scale");
    args.shift = statistic("shift");
    args.running_mean = statistic("running mean");
    args.running_variance = statistic("running variance");
    args.y = side.space(d.dtype, count);
    args.saved_mean = side.space(DType::f32, d.channels);
    args.saved_inverse_deviation = side.space(DType::f32, d.channels);
    side.run(op, args);
    const auto got = [&](const void* data) { return side.get(data, DType::f32, d.channels); };
    return {{"y", side.get(args.y, d.dtype, count), tolerance(d.dtype)},
            {"running mean", got(args.running_mean), tolerance(DType::f32)},
            {"running variance", got(args.running_variance), tolerance(DType::f32)},
            {"mean", got(args.saved_mean), tolerance(DType::f32)},
            {"inverse deviation", got(args.saved_inverse_deviation), tolerance(DType::f32)}};
  });
}

TEST_F(CudnnChoice, AveragePool) {
  const PoolDesc d{.kind = PoolKind::average,
                   .n = 2,
                   .h = 48,
                   .w = 48,
                   .c = 32,
                   .window_h = 3,
                   .window_w = 3,
                   .padding = 1,
                   .dtype = DType::bf16};
  expect_agreement(DeviceKind::cuda, &Backend::pool_forward, d, [&](Side& side, PoolForward& op) -> Outputs {
    if (side.backend().name() == "cuda") expect_choice(op.implementation());
    PoolForward::Args args;
    args.x = side.put(Tensor::normal(d.dtype, d.n * d.h * d.w * d.c, "x"));
    args.y = side.space(d.dtype, d.n * d.p() * d.q() * d.c);
    side.run(op, args);
    return {
        {"y", side.get(args.y, d.dtype, d.n * d.p() * d.q() * d.c), tolerance_of(OpGroup::pool, d.dtype, d.dtype, 9)}};
  });
}

// What has no plan of cuDNN at all.
TEST_F(CudnnChoice, MaximumPoolIsAnOwnKernel) {
  const PoolDesc d{.n = 1, .h = 8, .w = 8, .c = 8, .window_h = 2, .window_w = 2, .stride = 2, .dtype = DType::bf16};
  const auto side = device_side(DeviceKind::cuda).take();
  EXPECT_THAT(side->backend().pool_forward(d).take()->implementation(), StartsWith("assay:"));
  EXPECT_THAT(side->backend().pool_backward(d).take()->implementation(), StartsWith("assay:"));
}

// Arrays that cuDNN cannot take are the own kernel's, whichever was chosen.
TEST_F(CudnnChoice, UnalignedArrays) {
  const BatchNormDesc d{.rows = 300, .channels = 64, .dtype = DType::bf16, .training = false};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(DeviceKind::cuda, &Backend::batch_norm_forward, d, [&](Side& side, BatchNormForward& op) -> Outputs {
    const auto statistic = [&](const char* purpose) {
      return side.put(Tensor::normal(DType::f32, d.channels, purpose, 0.1, 1));
    };
    BatchNormForward::Args args;
    args.x = static_cast<const char*>(side.put(Tensor::normal(d.dtype, count + 1, "x"))) + size_of(d.dtype);
    args.scale = statistic("scale");
    args.shift = statistic("shift");
    args.running_mean = statistic("running mean");
    args.running_variance = statistic("running variance");
    args.y = side.space(d.dtype, count);
    side.run(op, args);
    return {
        {"y", side.get(args.y, d.dtype, count), tolerance_of(OpGroup::batch_norm_forward, d.dtype, d.dtype, d.rows)}};
  });
}

}  // namespace
}  // namespace assay::ops::parity
