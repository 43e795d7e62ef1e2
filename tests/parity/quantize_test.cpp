// Rounding to 8-bit floats and the step of their scales: GPUs and the oracle agree to the bit.
#include "tests/parity/frame.h"

#include <cmath>
#include <limits>

namespace assay::ops::parity {
namespace {

struct Rounding {
  std::string name;
  QuantizeDesc desc;
};

class QuantizeParity : public testing::TestWithParam<Rounding> {};

Outputs rounded(Side& side, Quantize& op, const QuantizeDesc& d, const Tensor& x) {
  const std::int64_t count = d.rows * d.columns;
  Quantize::Args args;
  args.x = side.put(x);
  if (d.plain) args.y = side.space(d.to, count);
  if (d.transposed) args.y_transposed = side.space(d.to, count);
  args.scale = static_cast<const float*>(side.put(Tensor::normal(DType::f32, 1, "scale", 0, 100)));
  args.amax = static_cast<float*>(side.space(DType::f32, 1));
  side.run(op, args);
  Outputs outputs{{"amax", side.get(args.amax, DType::f32, 1), {}}};
  if (d.plain) outputs.push_back({"y", side.get(args.y, d.to, count), {}});
  if (d.transposed) outputs.push_back({"y transposed", side.get(args.y_transposed, d.to, count), {}});
  return outputs;
}

TEST_P(QuantizeParity, Run) {
  const QuantizeDesc d = GetParam().desc;
  expect_agreement(DeviceKind::cuda, &Backend::quantize, d, [&](Side& side, Quantize& op) {
    return rounded(side, op, d, Tensor::normal(d.from, d.rows * d.columns, "x", 2));
  });
}

constexpr auto e4m3 = DType::fp8_e4m3, e5m2 = DType::fp8_e5m2;

INSTANTIATE_TEST_SUITE_P(All, QuantizeParity,
                         testing::ValuesIn(std::vector<Rounding>{
                             {"both_ways", {.rows = 128, .columns = 192, .transposed = true}},
                             {"odd_both_ways", {.rows = 67, .columns = 131, .to = e5m2, .transposed = true}},
                             {"plain", {.rows = 100, .columns = 64, .from = DType::f32}},
                             {"transposed_alone",
                              {.rows = 80, .columns = 24, .from = DType::fp16, .plain = false, .transposed = true}},
                             {"one", {.rows = 1, .columns = 1, .from = DType::f32, .to = e5m2, .transposed = true}}}),
                         [](const auto& rounding) { return "cuda_" + rounding.param.name; });

TEST(QuantizeParity, ANumberThatIsNoneShowsInTheLargest) {
  const QuantizeDesc d{.rows = 70, .columns = 70, .from = DType::f32};
  const auto device = device_side(DeviceKind::cuda);
  if (!device) GTEST_SKIP() << device.reason();
  Tensor x = Tensor::normal(d.from, d.rows * d.columns, "x");
  x.set(4321, std::numeric_limits<double>::quiet_NaN());
  expect_agreement(DeviceKind::cuda, &Backend::quantize, d,
                   [&](Side& side, Quantize& op) { return rounded(side, op, d, x); });
}

TEST(ScaleUpdateParity, HistoriesMoveOnAndGiveScales) {
  const ScaleUpdateDesc d{.tensors = 4, .length = 3};
  Tensor amax(DType::f32, 4), history(DType::f32, 12), largest(DType::f32, 4);
  const double infinite = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4; ++i) {
    amax.set(i, std::vector<double>{2, infinite, 0, 3}[static_cast<std::size_t>(i)]);
    largest.set(i, i < 3 ? 448 : 57344);
  }
  // The first tensor's maximum leaves its history, the second's stays, the third has none.
  const std::vector<double> before{7, 1, 0.5, 1, 4, 2, 0, 0, 0, 1, 1, 2};
  for (int i = 0; i < 12; ++i) history.set(i, before[static_cast<std::size_t>(i)]);
  const auto body = [&](Side& side, ScaleUpdate& op) {
    ScaleUpdate::Args args;
    args.amax = static_cast<const float*>(side.put(amax));
    args.history = static_cast<float*>(side.put(history));
    args.largest = static_cast<const float*>(side.put(largest));
    args.scale = static_cast<float*>(side.space(DType::f32, 4));
    args.inverse = static_cast<float*>(side.space(DType::f32, 4));
    side.run(op, args);
    return Outputs{{"history", side.get(args.history, DType::f32, 12), {}},
                   {"scale", side.get(args.scale, DType::f32, 4), {}},
                   {"inverse", side.get(args.inverse, DType::f32, 4), {}}};
  };
  Side oracle = oracle_side();
  const Outputs want = body(oracle, *oracle.backend().scale_update(d).take());
  const std::vector<double> moved{1, 0.5, 2, 4, 2, 0, 0, 0, 0, 1, 2, 3};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(want[0].value.at(i), moved[static_cast<std::size_t>(i)]) << i;
  const std::vector<double> scales{224, 112, 1, static_cast<double>(57344.0f / 3.0f)};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(want[1].value.at(i), scales[static_cast<std::size_t>(i)]) << i;
  expect_agreement(DeviceKind::cuda, &Backend::scale_update, d, body);
}

TEST(QuantizeDescriptor, SaysWhatIsWrong) {
  EXPECT_EQ(problem_of(QuantizeDesc{.rows = 0, .columns = 3}), "rows must be at least 1, not 0");
  EXPECT_EQ(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .from = DType::f64}),
            "what is rounded to 8 bits is f32, bf16 or fp16, not f64");
  EXPECT_EQ(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .to = DType::bf16}),
            "bf16 is not one of fp8_e4m3, fp8_e5m2");
  EXPECT_TRUE(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .plain = false}));
}

}  // namespace
}  // namespace assay::ops::parity
