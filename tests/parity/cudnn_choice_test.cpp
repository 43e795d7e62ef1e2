// The choice between our own kernels and cuDNN for batch norm, average pooling and attention, and its results. Only on
// the emulation, whose cuDNN is faster than any kernel; its script can remove the engines
// (ASSAY_EMULATION=cudnn=absent), make plans fail (cudnn=refuses) or be wrong (cudnn=wrong).
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
  static std::string chosen(const Op& op) {
    return op.choice().empty() ? op.implementation() : op.choice();
  }
  static std::string_view script() {
    const char* value = std::getenv("ASSAY_EMULATION");
    return value ? value : "";
  }
  static bool has(std::string_view word) { return script().find(word) != std::string_view::npos; }
  static void expect_choice(const std::string& chosen) {
    EXPECT_THAT(chosen, StartsWith(has("cudnn=") ? "assay:" : "emulated plan"));
  }
};

TEST_F(CudnnChoice, BatchNorm) {
  const BatchNormDesc d{.rows = 2000, .channels = 64, .dtype = DType::bf16, .relu = true};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(DeviceKind::cuda, &Backend::make<BatchNormForward>, d,
                   [&](Side& side, BatchNormForward& op) -> Outputs {
                     if (side.backend().name() == "cuda") expect_choice(chosen(op));
                     const auto tolerance = [&](DType out) {
                       return tolerance_of(OpGroup::batch_norm_forward, d.dtype, out, d.rows);
                     };
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

// cuDNN cannot work in place, and in_place() says so.
TEST_F(CudnnChoice, BatchNormBackward) {
  const BatchNormDesc d{.rows = 2000,
                        .channels = 64,
                        .dtype = DType::bf16,
                        .relu = true,
                        .residual = true,
                        .accumulate = true,
                        .two_gradients = true};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(DeviceKind::cuda, &Backend::make<BatchNormBackward>, d, [&](Side& side, BatchNormBackward& op) {
    if (side.backend().name() == "cuda") {
      expect_choice(chosen(op));
      EXPECT_EQ(op.in_place(), chosen(op).starts_with("assay:"));
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

// Only our own kernel can compute from x which elements passed ReLU.
TEST_F(CudnnChoice, BatchNormBackwardAfterReluIsOurKernel) {
  const auto side = device_side(DeviceKind::cuda).take();
  auto op = side->backend().make<BatchNormBackward>({.rows = 8, .channels = 64, .dtype = DType::bf16, .relu = true});
  EXPECT_THAT(op.take()->implementation(), StartsWith("assay:"));
}

// One tile of keys can be summed only in one order; with more tiles the faster kernel is chosen.
TEST_F(CudnnChoice, AttentionBackward) {
  const auto names_of = [](std::int64_t seq) {
    const AttentionDesc d{.batch = 2,
                          .seq = seq,
                          .heads = 2,
                          .kv_heads = 2,
                          .head_dim = 16,
                          .q_stride = 32,
                          .k_stride = 32,
                          .v_stride = 32,
                          .dtype = DType::bf16};
    const auto op = device_side(DeviceKind::cuda).take()->backend().make<AttentionBackward>(d).take();
    return fmt::format("{}, {}", op->implementation(), op->choice());
  };
  EXPECT_THAT(names_of(130), StartsWith(has("cudnn=absent") || has("cudnn=refuses") ? "products" : "flash:cuDNN"));
  EXPECT_THAT(names_of(128), StartsWith(has("cudnn=absent") ? "products" : "flash:cuDNN"));
  EXPECT_THAT(names_of(128), testing::Not(testing::HasSubstr("any order")));
  // cuDNN's scratch, after the sums of 2 x 1 x 129 rows, would not be aligned.
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
  EXPECT_THAT(side->backend().make<AttentionBackward>(odd).take()->implementation(), StartsWith("products"));
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
  expect_agreement(DeviceKind::cuda, &Backend::make<PoolForward>, d, [&](Side& side, PoolForward& op) -> Outputs {
    if (side.backend().name() == "cuda") expect_choice(chosen(op));
    PoolForward::Args args;
    args.x = side.put(Tensor::normal(d.dtype, d.n * d.h * d.w * d.c, "x"));
    args.y = side.space(d.dtype, d.n * d.p() * d.q() * d.c);
    side.run(op, args);
    return {
        {"y", side.get(args.y, d.dtype, d.n * d.p() * d.q() * d.c), tolerance_of(OpGroup::pool, d.dtype, d.dtype, 9)}};
  });
}

// The script's plans are the fastest, but one element of one output is wrong, which the number of rows selects.
TEST_F(CudnnChoice, AWrongPlanIsNotChosenAndTheChoiceSaysSo) {
  if (!has("cudnn=wrong")) GTEST_SKIP() << "the plans are right";
  const auto side = device_side(DeviceKind::cuda).take();
  Backend& backend = side->backend();
  const auto expect_rejected = [](const auto& op, std::string_view plan, std::string_view output) {
    EXPECT_EQ(op->choice(), fmt::format("{} (emulated plan of {} disagrees in {})", "assay:sm_90", plan, output));
  };
  const auto desc = [](std::int64_t rows, DType dtype) {
    return BatchNormDesc{.rows = rows, .channels = 64, .dtype = dtype};
  };
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp16}) {
    std::int64_t rows = 200;
    for (const char* output : {"y", "mean", "inverse deviation", "running mean", "running variance"})
      expect_rejected(backend.make<BatchNormForward>(desc(rows++, dtype)).take(), "batch norm in training", output);
    rows = 300;
    for (const char* output : {"dx", "dscale", "dshift"})
      expect_rejected(backend.make<BatchNormBackward>(desc(rows++, dtype)).take(), "batch norm's gradient", output);
    rows = 400;
    for (const char* output : {"dx", "dscale", "dshift", "dresidual"}) {
      BatchNormDesc d = desc(rows++, dtype);
      d.relu = d.residual = d.accumulate = true;
      expect_rejected(backend.make<BatchNormBackward>(d).take(), "batch norm's gradient", output);
    }
    BatchNormDesc evaluation = desc(200, dtype);
    evaluation.training = false;
    expect_rejected(backend.make<BatchNormForward>(evaluation).take(), "batch norm in evaluation", "y");
    const PoolDesc pool{
        .kind = PoolKind::average, .n = 2, .h = 8, .w = 8, .c = 16, .window_h = 8, .window_w = 8, .dtype = dtype};
    expect_rejected(backend.make<PoolForward>(pool).take(), "average pooling", "y");
  }
}

// cuDNN has no plan for max pooling.
TEST_F(CudnnChoice, MaxPoolIsOurKernel) {
  const PoolDesc d{.n = 1, .h = 8, .w = 8, .c = 8, .window_h = 2, .window_w = 2, .stride = 2, .dtype = DType::bf16};
  const auto side = device_side(DeviceKind::cuda).take();
  EXPECT_THAT(side->backend().make<PoolForward>(d).take()->implementation(), StartsWith("assay:"));
  EXPECT_THAT(side->backend().make<PoolBackward>(d).take()->implementation(), StartsWith("assay:"));
}

// Our own kernel handles arrays that are not aligned enough for cuDNN, whatever was chosen.
TEST_F(CudnnChoice, UnalignedArrays) {
  const BatchNormDesc d{.rows = 300, .channels = 64, .dtype = DType::bf16, .training = false};
  const std::int64_t count = d.rows * d.channels;
  expect_agreement(
      DeviceKind::cuda, &Backend::make<BatchNormForward>, d, [&](Side& side, BatchNormForward& op) -> Outputs {
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
        return {{"y", side.get(args.y, d.dtype, count),
                 tolerance_of(OpGroup::batch_norm_forward, d.dtype, d.dtype, d.rows)}};
      });
}

}  // namespace
}  // namespace assay::ops::parity
