// Batch norm, average pooling and attention between own kernels and cuDNN: which does an op, and that it does it right.
// On the emulation alone, whose cuDNN is faster than any kernel; its script has it without engines
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

  template <typename Op>
  static std::string way(const Op& op) {
    return op.choice().empty() ? op.implementation() : op.choice();
  }
  static void expect_choice(const std::string& way) {
    const char* script = std::getenv("ASSAY_EMULATION");
    const bool offers = !script || std::string_view(script).find("cudnn=") == std::string_view::npos;
    EXPECT_THAT(way, StartsWith(offers ? "emulated plan" : "assay:"));
  }
};

TEST_F(CudnnChoice, BatchNorm) {
  const BatchNormDesc d{.rows = 2000, .channels = 64, .dtype = DType::bf16, .relu = true};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(DeviceKind::cuda, &Backend::batch_norm_forward, d, [&](Side& side, BatchNormForward& op) -> Outputs {
    if (side.backend().name() == "cuda") expect_choice(way(op));
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

// Nothing that cuDNN writes may lie over what it reads, and models are told.
TEST_F(CudnnChoice, BatchNormBackward) {
  const BatchNormDesc d{.rows = 2000,
                        .channels = 64,
                        .dtype = DType::bf16,
                        .relu = true,
                        .residual = true,
                        .accumulate = true,
                        .two_gradients = true};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(DeviceKind::cuda, &Backend::batch_norm_backward, d, [&](Side& side, BatchNormBackward& op) {
    if (side.backend().name() == "cuda") {
      expect_choice(way(op));
      EXPECT_EQ(op.in_place(), way(op).starts_with("assay:"));
    }
    const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::batch_norm_backward, d.dtype, out, d.rows); };
    const auto image = [&](const char* purpose) { return side.put(Tensor::normal(d.dtype, count, purpose)); };
    const auto statistic = [&](const char* purpose, double mean) {
      return side.put(Tensor::normal(DType::f32, d.channels, purpose, 0.1, mean));
    };
    BatchNormBackward::Args args;
    args.dy = image("dy");
    args.dy_other = image("other");
    args.x = image("x");
    args.y = image("y");
    args.scale = statistic("scale", 1);
    args.shift = statistic("shift", 0);
    args.saved_mean = statistic("mean", 0);
    args.saved_inverse_deviation = statistic("inverse deviation", 1);
    args.dx = side.space(d.dtype, count);
    args.dresidual = side.space(d.dtype, count);
    args.dscale = statistic("dscale", 1);
    args.dshift = statistic("dshift", 1);
    side.run(op, args);
    const auto got = [&](const void* data) { return side.get(data, DType::f32, d.channels); };
    return Outputs{{"dx", side.get(args.dx, d.dtype, count), tolerance(d.dtype)},
                   {"dresidual", side.get(args.dresidual, d.dtype, count), tolerance(d.dtype)},
                   {"dscale", got(args.dscale), tolerance(DType::f32)},
                   {"dshift", got(args.dshift), tolerance(DType::f32)}};
  });
}

// What ReLU let through is told from x by the own kernel alone.
TEST_F(CudnnChoice, BatchNormBackwardBehindReluIsAnOwnKernel) {
  const auto side = device_side(DeviceKind::cuda).take();
  auto op = side->backend().batch_norm_backward({.rows = 8, .channels = 64, .dtype = DType::bf16, .relu = true});
  EXPECT_THAT(op.take()->implementation(), StartsWith("assay:"));
}

// Of one tile of keys only one order of sums can be; of more whichever is faster.
TEST_F(CudnnChoice, AttentionBackward) {
  const auto made = [](std::int64_t seq) {
    const AttentionDesc d{.batch = 2,
                          .seq = seq,
                          .heads = 2,
                          .kv_heads = 2,
                          .head_dim = 16,
                          .q_stride = 32,
                          .k_stride = 32,
                          .v_stride = 32,
                          .dtype = DType::bf16};
    const auto op = device_side(DeviceKind::cuda).take()->backend().attention_backward(d).take();
    return fmt::format("{}, {}", op->implementation(), op->choice());
  };
  const char* script = std::getenv("ASSAY_EMULATION");
  const std::string_view mood = script ? script : "";
  EXPECT_THAT(made(130), StartsWith(mood.find("cudnn=") == mood.npos ? "flash:cuDNN" : "products"));
  EXPECT_THAT(made(128), StartsWith(mood.find("cudnn=absent") == mood.npos ? "flash:cuDNN" : "products"));
  EXPECT_THAT(made(128), testing::Not(testing::HasSubstr("any order")));
  // cuDNN's scratch would not be aligned behind the sums of 2 x 1 x 129 rows.
  const AttentionDesc odd{.batch = 2,
                          .seq = 129,
                          .heads = 1,
                          .kv_heads = 1,
                          .head_dim = 16,
                          .q_stride = 16,
                          .k_stride = 16,
                          .v_stride = 16,
                          .dtype = DType::bf16};
  const auto side = device_side(DeviceKind::cuda).take();
  EXPECT_THAT(side->backend().attention_backward(odd).take()->implementation(), StartsWith("products"));
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
    if (side.backend().name() == "cuda") expect_choice(way(op));
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
