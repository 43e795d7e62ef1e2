// Rounding to 8-bit floats and the update of their scales: GPUs and the oracle are bitwise equal.
#include "tests/parity/frame.h"

#include <cmath>
#include <cstddef>
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
  // amax of earlier micro-batches: less than the largest element of most tensors here, more than the single element's.
  Tensor earlier(DType::f32, 1);
  earlier.set(0, 5.5);
  args.amax = static_cast<float*>(side.put(earlier));
  if (d.column_sums) args.column_sums = static_cast<float*>(side.put(Tensor::normal(DType::f32, d.columns, "sums")));
  side.run(op, args);
  Outputs outputs{{"amax", side.get(args.amax, DType::f32, 1), {}}};
  if (d.column_sums)
    outputs.push_back({"column sums", side.get(args.column_sums, DType::f32, d.columns),
                       tolerance_of(OpGroup::elementwise, DType::f32, DType::f32, d.rows, 20)});
  if (d.plain) outputs.push_back({"y", side.get(args.y, d.to, count), {}});
  if (d.transposed) outputs.push_back({"y transposed", side.get(args.y_transposed, d.to, count), {}});
  return outputs;
}

TEST_P(QuantizeParity, Run) {
  const QuantizeDesc d = GetParam().desc;
  expect_agreement(DeviceKind::cuda, &Backend::make<Quantize>, d, [&](Side& side, Quantize& op) {
    return rounded(side, op, d, Tensor::normal(d.from, d.rows * d.columns, "x", 2));
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, QuantizeParity,
    testing::ValuesIn(std::vector<Rounding>{
        {"both_ways", {.rows = 128, .columns = 192, .transposed = true}},
        {"odd_both_ways", {.rows = 67, .columns = 131, .to = e5m2, .transposed = true}},
        {"several_tiles_both_ways", {.rows = 272, .columns = 136, .from = DType::f32, .transposed = true}},
        {"ragged_tiles", {.rows = 250, .columns = 72, .to = e5m2, .transposed = true, .column_sums = true}},
        {"plain", {.rows = 100, .columns = 64, .from = DType::f32}},
        {"transposed_alone", {.rows = 80, .columns = 24, .from = DType::fp16, .plain = false, .transposed = true}},
        {"bias_gradient", {.rows = 192, .columns = 128, .to = e5m2, .transposed = true, .column_sums = true}},
        {"bias_gradient_odd", {.rows = 131, .columns = 67, .to = e5m2, .column_sums = true, .accumulate = true}},
        {"bias_gradient_f32", {.rows = 3, .columns = 200, .from = DType::f32, .column_sums = true, .accumulate = true}},
        {"one", {.rows = 1, .columns = 1, .from = DType::f32, .to = e5m2, .transposed = true}}}),
    [](const auto& rounding) { return "cuda_" + rounding.param.name; });

TEST(QuantizeParity, NanReachesAmax) {
  const QuantizeDesc d{.rows = 70, .columns = 70, .from = DType::f32};
  const auto device = device_side(DeviceKind::cuda);
  if (!device) GTEST_SKIP() << device.reason();
  Tensor x = Tensor::normal(d.from, d.rows * d.columns, "x");
  x.set(4321, std::numeric_limits<double>::quiet_NaN());
  expect_agreement(DeviceKind::cuda, &Backend::make<Quantize>, d,
                   [&](Side& side, Quantize& op) { return rounded(side, op, d, x); });
}

TEST(QuantizeParity, AmaxIsOptional) {
  const QuantizeDesc d{.rows = 16, .columns = 48};
  const Tensor x = Tensor::normal(d.from, d.rows * d.columns, "x", 2);
  expect_agreement(DeviceKind::cuda, &Backend::make<Quantize>, d, [&](Side& side, Quantize& op) {
    Quantize::Args args;
    args.x = side.put(x);
    args.y = side.space(d.to, d.rows * d.columns);
    args.scale = static_cast<const float*>(side.put(Tensor::normal(DType::f32, 1, "scale", 0, 100)));
    side.run(op, args);
    return Outputs{{"y", side.get(args.y, d.to, d.rows * d.columns), {}}};
  });
}

// Computed by hand: a history whose maximum is 4 gives 448 / 4 = 112 for e4m3; a margin of 2 gives a quarter of that.
TEST(ScaleUpdate, LeavesTheMargin) {
  Side oracle = oracle_side();
  const auto scale_with = [&](int margin) {
    float amax = 4, largest = 448, history[3] = {9, 1, 2}, scale = 0, inverse = 0;
    StepState state;
    oracle.backend()
        .make<ScaleUpdate>({.tensors = 1, .length = 3, .margin = margin})
        .take()
        ->run(oracle.stream(), {.amax = &amax,
                                .history = history,
                                .largest = &largest,
                                .scale = &scale,
                                .inverse = &inverse,
                                .state = &state,
                                .workspace = nullptr});
    EXPECT_EQ(scale * inverse, 1);
    EXPECT_EQ(state.found_infinity, 0);
    return scale;
  };
  EXPECT_EQ(scale_with(0), 112);
  EXPECT_EQ(scale_with(2), 28);
}

TEST(ScaleUpdateParity, UpdatesHistoriesAndScales) {
  const ScaleUpdateDesc d{.tensors = 4, .length = 3};
  Tensor amax(DType::f32, 4), history(DType::f32, 12), largest(DType::f32, 4);
  const double infinite = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 4; ++i) {
    amax.set(i, std::vector<double>{2, infinite, 0, 3}[static_cast<std::size_t>(i)]);
    largest.set(i, i < 3 ? 448 : 57344);
  }
  // The first tensor's maximum leaves its history, the second's stays, the third's history is zero.
  const std::vector<double> before{7, 1, 0.5, 1, 4, 2, 0, 0, 0, 1, 1, 2};
  for (int i = 0; i < 12; ++i) history.set(i, before[static_cast<std::size_t>(i)]);
  const auto body = [&](Side& side, ScaleUpdate& op) {
    ScaleUpdate::Args args;
    args.amax = static_cast<const float*>(side.put(amax));
    args.history = static_cast<float*>(side.put(history));
    args.largest = static_cast<const float*>(side.put(largest));
    args.scale = static_cast<float*>(side.space(DType::f32, 4));
    args.inverse = static_cast<float*>(side.space(DType::f32, 4));
    static_assert(sizeof(StepState) % sizeof(std::int32_t) == 0 && offsetof(StepState, found_infinity) % 4 == 0);
    constexpr std::int64_t words = sizeof(StepState) / sizeof(std::int32_t);
    auto* state = static_cast<std::int32_t*>(side.put(Tensor::integers(words, 1, "zeros")));
    args.state = reinterpret_cast<StepState*>(state);
    side.run(op, args);
    return Outputs{{"history", side.get(args.history, DType::f32, 12), {}},
                   {"scale", side.get(args.scale, DType::f32, 4), {}},
                   {"inverse", side.get(args.inverse, DType::f32, 4), {}},
                   {"found infinity", side.get(&args.state->found_infinity, DType::i32, 1), {}}};
  };
  Side oracle = oracle_side();
  const Outputs want = body(oracle, *oracle.backend().make<ScaleUpdate>(d).take());
  const std::vector<double> moved{1, 0.5, 2, 4, 2, 0, 0, 0, 0, 1, 2, 3};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(want[0].value.at(i), moved[static_cast<std::size_t>(i)]) << i;
  const std::vector<double> scales{224, 112, 1, static_cast<double>(57344.0f / 3.0f)};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(want[1].value.at(i), scales[static_cast<std::size_t>(i)]) << i;
  EXPECT_EQ(want[3].value.at(0), 1) << "one magnitude is infinite";
  expect_agreement(DeviceKind::cuda, &Backend::make<ScaleUpdate>, d, body);
}

TEST(QuantizeDescriptor, NamesItsProblem) {
  EXPECT_EQ(problem_of(QuantizeDesc{.rows = 0, .columns = 3}), "rows must be at least 1, not 0");
  EXPECT_EQ(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .from = DType::f64}),
            "only f32, bf16 and fp16 are rounded to 8 bits, not f64");
  EXPECT_EQ(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .to = DType::bf16}),
            "bf16 is not one of fp8_e4m3, fp8_e5m2");
  EXPECT_TRUE(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .plain = false}));
  EXPECT_TRUE(problem_of(QuantizeDesc{.rows = 1, .columns = 3, .accumulate = true}));
}

}  // namespace
}  // namespace assay::ops::parity
