// What training asks of matrix products beside the plain ones of matmul_test: weights packed from masters, bias,
// epilogues, accumulation, row sums.
#include "tests/parity/frame.h"

namespace assay::ops::parity {
namespace {

struct Product {
  std::string name;
  MatmulDesc desc;  // out f64: the dtype under test
};

using MatmulTrainingParity = Parity<Product>;

TEST_P(MatmulTrainingParity, Run) {
  MatmulDesc d = shape().desc;
  d.a = d.b = dtype();
  if (d.out == DType::f64) d.out = dtype();
  const bool gelu = d.epilogue == Epilogue::gelu_tanh || d.epilogue == Epilogue::gelu_erf;
  const bool gradient = d.epilogue == Epilogue::gelu_tanh_gradient || d.epilogue == Epilogue::gelu_erf_gradient;
  expect_agreement(kind(), &Backend::make, d, [&](Side& side, Matmul& op) {
    const std::int64_t count = d.m * d.n;
    MatmulArgs args;
    args.a = side.put(Tensor::normal(d.a, d.m * d.k, "a"));
    args.b = side.pack(op, Tensor::normal(d.form == WeightForm::plain ? d.b : d.pack_from, d.k * d.n, "b", 0.2));
    args.out = d.accumulate ? side.put(Tensor::normal(d.out, count, "out")) : side.space(d.out, count);
    if (d.bias) args.bias = side.put(Tensor::normal(d.bias_type, d.n, "bias"));
    if (gradient) args.aux = side.put(Tensor::normal(d.out, count, "z"));
    if (gelu) args.aux = side.space(d.out, count);
    const DType sums = statistic(d.a);
    if (d.row_sums) args.row_sums = d.accumulate ? side.put(Tensor::normal(sums, d.m, "sums")) : side.space(sums, d.m);
    side.run(op, args);
    const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::matmul, d.a, out, d.k); };
    Outputs outputs{{"out", side.get(args.out, d.out, count), tolerance(d.out)}};
    if (gelu) outputs.push_back({"z", side.get(args.aux, d.out, count), tolerance(d.out)});
    if (d.row_sums) outputs.push_back({"row sums", side.get(args.row_sums, sums, d.m), tolerance(sums)});
    return outputs;
  });
}

constexpr DType own = DType::f64;
constexpr auto packed = WeightForm::packed;

INSTANTIATE_TEST_SUITE_P(
    All, MatmulTrainingParity,
    on_every_device<Product>(
        {{"packed_from_masters", {.m = 33, .n = 65, .k = 129, .out = own, .form = packed}},
         {"packed_transposed_bias",
          {.m = 64, .n = 96, .k = 48, .out = own, .transpose_b = true, .form = packed, .bias = true}},
         {"plain_bias_odd", {.m = 7, .n = 31, .k = 77, .out = own, .transpose_b = true, .bias = true}},
         {"gelu_tanh_bias",
          {.m = 40,
           .n = 72,
           .k = 33,
           .out = own,
           .transpose_b = true,
           .form = packed,
           .bias = true,
           .epilogue = Epilogue::gelu_tanh}},
         {"gelu_erf_bias",
          {.m = 17,
           .n = 64,
           .k = 64,
           .out = own,
           .transpose_b = true,
           .form = packed,
           .bias = true,
           .epilogue = Epilogue::gelu_erf}},
         {"gelu_tanh_plain_1x1", {.m = 1, .n = 1, .k = 5, .out = own, .epilogue = Epilogue::gelu_tanh}},
         {"gelu_tanh_gradient",
          {.m = 40, .n = 33, .k = 72, .out = own, .form = packed, .epilogue = Epilogue::gelu_tanh_gradient}},
         {"gelu_erf_gradient",
          {.m = 21, .n = 64, .k = 48, .out = own, .form = packed, .epilogue = Epilogue::gelu_erf_gradient}},
         {"weight_gradient", {.m = 65, .n = 33, .k = 128, .out = DType::f32, .transpose_a = true, .row_sums = true}},
         {"weight_gradient_accumulated",
          {.m = 48, .n = 80, .k = 100, .out = DType::f32, .transpose_a = true, .accumulate = true, .row_sums = true}},
         {"weight_gradient_accumulated_no_sums",
          {.m = 31, .n = 7, .k = 3, .out = DType::f32, .transpose_a = true, .accumulate = true}}}),
    name_of_case<Product>);

}  // namespace
}  // namespace assay::ops::parity
