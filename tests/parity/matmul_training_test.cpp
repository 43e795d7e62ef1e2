// What training needs of matrix products beyond matmul_test: weights packed from masters, bias, epilogues,
// accumulation, row sums.
#include "harness/core/error.h"
#include "tests/parity/frame.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>

namespace assay::ops::parity {
namespace {

struct Product {
  std::string name;
  MatmulDesc desc;  // out f64 stands for the dtype under test
};

using MatmulTrainingParity = Parity<Product>;

// A GPU rounds the bias to a 16-bit output's type, so round it here for the oracle too.
Tensor bias_for(DeviceKind kind, const MatmulDesc& d) {
  Tensor bias = Tensor::normal(d.bias_type, d.n, "bias");
  if (kind == DeviceKind::cuda && size_of(d.out) == 2)
    for (std::int64_t i = 0; i < d.n; ++i) {
      const auto value = static_cast<float>(bias.at(i));
      bias.set(i, static_cast<double>(d.out == DType::bf16 ? static_cast<float>(bf16(value))
                                                           : static_cast<float>(fp16(value))));
    }
  return bias;
}

// For GELU on a GPU with a 16-bit output: the product is rounded once more if the library does not fuse GELU; if it
// does, its tanh is accurate to 11 bits.
Tolerance loosened_for_gelu(Tolerance t, DeviceKind kind, DType out) {
  if (kind != DeviceKind::cuda || size_of(out) != 2) return t;
  const double half_ulp = out == DType::bf16 ? 0x1p-9 : 0x1p-12;
  t.relative_l2 += half_ulp;
  t.element_relative += 2 * half_ulp;
  t.absolute += half_ulp / 2;
  return t;
}

void expect_product(DeviceKind kind, const MatmulDesc& d) {
  const bool gelu = d.epilogue == Epilogue::gelu_tanh || d.epilogue == Epilogue::gelu_erf;
  const bool gradient = d.epilogue == Epilogue::gelu_tanh_gradient || d.epilogue == Epilogue::gelu_erf_gradient;
  expect_agreement(kind, &Backend::make<Matmul>, d, [&](Side& side, Matmul& op) {
    const std::int64_t count = d.m * d.out_row();
    MatmulArgs args;
    args.a = side.put(Tensor::normal(d.a, (d.transpose_a ? d.k : d.m) * d.a_row(), "a"));
    const DType weights = d.form == WeightForm::plain ? d.b : d.pack_from;
    args.b = side.pack(op, Tensor::normal(weights, (d.transpose_b ? d.n : d.k) * d.b_row(), "b", 0.2));
    args.out = d.accumulate ? side.put(Tensor::normal(d.out, count, "out")) : side.space(d.out, count);
    if (d.bias) args.bias = side.put(bias_for(kind, d));
    if (gradient) args.aux = side.put(Tensor::normal(d.out, count, "z"));
    if (gelu) args.aux = side.space(d.out, count);
    if (size_of(d.a) == 1) {
      args.scale_a = static_cast<const float*>(side.put(Tensor::normal(DType::f32, 1, "scale a", 0, 0.25)));
      args.scale_b = static_cast<const float*>(side.put(Tensor::normal(DType::f32, 1, "scale b", 0, 1.5)));
    }
    const DType sums = statistic(d.a);
    if (d.row_sums) args.row_sums = d.accumulate ? side.put(Tensor::normal(sums, d.m, "sums")) : side.space(sums, d.m);
    side.run(op, args);
    const Tolerance tolerance = matmul_tolerance(d.a, d.out, d.k, d.fast_accumulate);
    const Tolerance after = gelu || gradient ? loosened_for_gelu(tolerance, kind, d.out) : tolerance;
    Outputs outputs{{"out", side.get(args.out, d.out, count), after}};
    if (gelu) outputs.push_back({"z", side.get(args.aux, d.out, count), tolerance});
    if (d.row_sums)
      outputs.push_back(
          {"row sums", side.get(args.row_sums, sums, d.m), tolerance_of(OpGroup::matmul, d.a, sums, d.k)});
    return outputs;
  });
}

TEST_P(MatmulTrainingParity, Run) {
  MatmulDesc d = shape().desc;
  d.a = d.b = dtype();
  if (d.out == DType::f64) d.out = dtype();
  if (kind() == DeviceKind::cuda) d.form = WeightForm::plain;  // the only form with these options on a GPU
  expect_product(kind(), d);
}

constexpr DType tested = DType::f64;
constexpr auto packed = WeightForm::packed;

INSTANTIATE_TEST_SUITE_P(
    All, MatmulTrainingParity,
    on_every_device<Product>(
        {{"packed_from_masters", {.m = 33, .n = 65, .k = 129, .out = tested, .form = packed}},
         {"packed_transposed_bias",
          {.m = 64, .n = 96, .k = 48, .out = tested, .transpose_b = true, .form = packed, .bias = true}},
         {"plain_bias_odd", {.m = 7, .n = 31, .k = 77, .out = tested, .transpose_b = true, .bias = true}},
         {"gelu_tanh_bias",
          {.m = 40,
           .n = 72,
           .k = 33,
           .out = tested,
           .transpose_b = true,
           .form = packed,
           .bias = true,
           .epilogue = Epilogue::gelu_tanh}},
         {"gelu_erf_bias",
          {.m = 17,
           .n = 64,
           .k = 64,
           .out = tested,
           .transpose_b = true,
           .form = packed,
           .bias = true,
           .epilogue = Epilogue::gelu_erf}},
         {"gelu_tanh_plain_1x1", {.m = 1, .n = 1, .k = 5, .out = tested, .epilogue = Epilogue::gelu_tanh}},
         {"gelu_tanh_gradient",
          {.m = 40, .n = 33, .k = 72, .out = tested, .form = packed, .epilogue = Epilogue::gelu_tanh_gradient}},
         {"gelu_erf_gradient",
          {.m = 21, .n = 64, .k = 48, .out = tested, .form = packed, .epilogue = Epilogue::gelu_erf_gradient}},
         {"weight_gradient", {.m = 65, .n = 33, .k = 128, .out = DType::f32, .transpose_a = true, .row_sums = true}},
         {"weight_gradient_accumulated",
          {.m = 48, .n = 80, .k = 100, .out = DType::f32, .transpose_a = true, .accumulate = true, .row_sums = true}},
         {"weight_gradient_accumulated_no_sums",
          {.m = 31, .n = 7, .k = 3, .out = DType::f32, .transpose_a = true, .accumulate = true}}}),
    name_of_case<Product>);

// Weights for tile instructions, which only some CPUs have. The large products have several blocks of rows, chunks of k
// and writes past the caches.
class MatmulTilesParity : public testing::TestWithParam<Product> {};

TEST_P(MatmulTilesParity, Run) {
  MatmulDesc d = GetParam().desc;
  d.a = d.b = DType::bf16;
  d.form = d.transpose_a ? WeightForm::plain : WeightForm::tiles;
  expect_product(DeviceKind::cpu, d);
}

INSTANTIATE_TEST_SUITE_P(
    All, MatmulTilesParity,
    testing::ValuesIn(std::vector<Product>{
        {"bias", {.m = 70, .n = 96, .k = 77, .out = DType::bf16, .transpose_b = true, .bias = true}},
        {"bias_bf16", {.m = 31, .n = 50, .k = 64, .bias = true, .bias_type = DType::bf16}},
        {"gelu", {.m = 40, .n = 72, .k = 33, .out = DType::bf16, .bias = true, .epilogue = Epilogue::gelu_tanh}},
        {"gelu_f32", {.m = 40, .n = 49, .k = 96, .epilogue = Epilogue::gelu_erf}},
        {"gelu_gradient", {.m = 33, .n = 47, .k = 64, .out = DType::bf16, .epilogue = Epilogue::gelu_tanh_gradient}},
        {"accumulated", {.m = 65, .n = 100, .k = 40, .accumulate = true}},
        {"accumulated_bf16", {.m = 9, .n = 100, .k = 40, .out = DType::bf16, .accumulate = true}},
        {"blocks_of_rows", {.m = 900, .n = 50, .k = 70, .out = DType::bf16}},
        {"chunks_of_k", {.m = 100, .n = 100, .k = 5000, .out = DType::bf16, .bias = true}},
        {"chunks_of_k_in_blocks", {.m = 401, .n = 49, .k = 6150, .accumulate = true}},
        {"past_the_caches", {.m = 1024, .n = 1040, .k = 32}},
        {"gradient_in_blocks", {.m = 801, .n = 48, .k = 4100, .transpose_a = true, .row_sums = true}},
    }),
    [](const auto& test) { return test.param.name; });

// Only GPUs support matrices with padded rows, and 8-bit operands with scales.
class MatmulGpuParity : public testing::TestWithParam<Product> {};

TEST_P(MatmulGpuParity, Run) { expect_product(DeviceKind::cuda, GetParam().desc); }

INSTANTIATE_TEST_SUITE_P(
    All, MatmulGpuParity,
    testing::ValuesIn(std::vector<Product>{
        {"padded_logits",
         {.m = 33, .n = 57, .k = 40, .a = half, .b = half, .out = half, .transpose_b = true, .out_stride = 64}},
        {"padded_logits_bias",
         {.m = 33,
          .n = 57,
          .k = 40,
          .a = half,
          .b = half,
          .out = half,
          .transpose_b = true,
          .out_stride = 64,
          .bias = true}},
        {"back_from_padded_logits", {.m = 33, .n = 40, .k = 57, .a = half, .b = half, .out = half, .a_stride = 64}},
        {"weight_gradient_of_padded_logits",
         {.m = 57,
          .n = 40,
          .k = 33,
          .a = half,
          .b = half,
          .out = DType::f32,
          .transpose_a = true,
          .a_stride = 64,
          .accumulate = true,
          .row_sums = true}},
        {"row_sums_of_whole_words",
         {.m = 64, .n = 40, .k = 1000, .a = half, .b = half, .out = DType::f32, .transpose_a = true, .row_sums = true}},
        {"row_sums_untransposed",
         {.m = 19, .n = 8, .k = 77, .a = DType::f64, .b = DType::f64, .out = DType::f64, .row_sums = true}},
        {"strided_b", {.m = 9, .n = 24, .k = 17, .out = DType::f32, .b_stride = 31}},
        {"f64_bias",
         {.m = 9,
          .n = 24,
          .k = 17,
          .a = DType::f64,
          .b = DType::f64,
          .out = DType::f64,
          .bias = true,
          .bias_type = DType::f64}},
        {"tf32_gelu",
         {.m = 9,
          .n = 24,
          .k = 17,
          .a = DType::tf32,
          .b = DType::tf32,
          .out = DType::f32,
          .bias = true,
          .epilogue = Epilogue::gelu_tanh}},
        {"fp8_forward",
         {.m = 33,
          .n = 48,
          .k = 64,
          .a = e4m3,
          .b = e4m3,
          .out = half,
          .transpose_b = true,
          .bias = true,
          .epilogue = Epilogue::gelu_tanh,
          .fast_accumulate = true}},
        {"fp8_data_gradient",
         {.m = 33,
          .n = 64,
          .k = 48,
          .a = e5m2,
          .b = e4m3,
          .out = half,
          .transpose_b = true,
          .epilogue = Epilogue::gelu_tanh_gradient}},
        {"fp8_data_gradient_accumulated",
         {.m = 33, .n = 64, .k = 48, .a = e5m2, .b = e4m3, .out = half, .transpose_b = true, .accumulate = true}},
        {"fp8_weight_gradient",
         {.m = 48, .n = 64, .k = 32, .a = e5m2, .b = e4m3, .out = DType::f32, .transpose_b = true, .accumulate = true}},
        {"fp8_f32_bias",
         {.m = 5, .n = 16, .k = 32, .a = e4m3, .b = e4m3, .out = DType::f32, .transpose_b = true, .bias = true}},
        {"fp8_copies", {.m = 32, .n = 48, .k = 64, .a = e4m3, .b = e4m3, .out = half, .transpose_a = true}}}),
    [](const auto& product) { return "cuda_" + product.param.name; });

// On the emulation, with a script by which the library's heuristics return an error for every epilogue.
TEST(MatmulFusion, ThatFailsIsDoneUnfusedUnlessTheDeviceIsLost) {
  const char* script = std::getenv("ASSAY_EMULATION");
  if (!script || !std::strstr(script, "fusion_error")) GTEST_SKIP() << "the emulation does not refuse to fuse";
  const auto side = device_side(DeviceKind::cuda).take();
  const MatmulDesc d{.m = 32,
                     .n = 48,
                     .k = 64,
                     .a = half,
                     .b = half,
                     .out = half,
                     .transpose_b = true,
                     .bias = true,
                     .epilogue = Epilogue::gelu_tanh};
  if (std::strstr(script, "fusion_loses_device")) {
    EXPECT_THAT([&] { side->backend().make<Matmul>(d); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("INTERNAL_ERROR")));
    return;
  }
  EXPECT_THAT(side->backend().make<Matmul>(d).take()->choice(), testing::HasSubstr(" + bias + GELU"));
  const MatmulDesc sums{
      .m = 64, .n = 40, .k = 96, .a = half, .b = half, .out = DType::f32, .transpose_a = true, .row_sums = true};
  EXPECT_THAT(side->backend().make<Matmul>(sums).take()->choice(), testing::HasSubstr(" + row sums"));
}

}  // namespace
}  // namespace assay::ops::parity
