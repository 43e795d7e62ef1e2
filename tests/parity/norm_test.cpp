// Layer norm and RMS norm against the oracle.
#include "tests/parity/frame.h"

#include <limits>

namespace assay::ops::parity {
namespace {

struct NormOptions {
  bool residual = false;
  bool bias = true;
  bool accumulate = false;
  bool in_place = false;  // sum is residual, dx is dsum
  double mean = 0;
};

struct Norm {
  std::string name;
  NormKind kind;
  std::int64_t rows, columns;
  NormOptions options = {};
};

using NormParity = Parity<Norm>;

NormDesc desc_of(const Norm& shape, DType dtype) {
  return {.kind = shape.kind,
          .rows = shape.rows,
          .columns = shape.columns,
          .dtype = dtype,
          .residual = shape.options.residual,
          .bias = shape.options.bias,
          .accumulate = shape.options.accumulate};
}

Outputs forward(Side& side, NormForward& op, const Norm& shape, DType dtype) {
  const std::int64_t count = shape.rows * shape.columns;
  const DType stored = statistic(dtype);
  const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::norm_forward, dtype, out, shape.columns); };
  NormForward::Args args;
  args.x = side.put(Tensor::normal(dtype, count, "x", 1, shape.options.mean));
  void* residual = side.put(Tensor::normal(dtype, count, "residual"));
  if (shape.options.residual) args.residual = residual;
  if (shape.options.residual) args.sum = shape.options.in_place ? residual : side.space(dtype, count);
  args.weight = side.put(Tensor::normal(stored, shape.columns, "weight", 0.3, 1));
  if (shape.options.bias) args.bias = side.put(Tensor::normal(stored, shape.columns, "bias"));
  args.y = side.space(dtype, count);
  if (shape.kind == NormKind::layer) args.saved_mean = side.space(stored, shape.rows);
  args.saved_inverse_deviation = side.space(stored, shape.rows);
  side.run(op, args);
  Outputs outputs{{"y", side.get(args.y, dtype, count), tolerance(dtype)},
                  {"inverse deviation", side.get(args.saved_inverse_deviation, stored, shape.rows), tolerance(stored)}};
  if (shape.options.residual) outputs.push_back({"sum", side.get(args.sum, dtype, count), tolerance(dtype)});
  if (args.saved_mean) outputs.push_back({"mean", side.get(args.saved_mean, stored, shape.rows), tolerance(stored)});
  return outputs;
}

TEST_P(NormParity, Forward) {
  expect_agreement(kind(), &Backend::make<NormForward>, desc_of(shape(), dtype()),
                   [&](Side& side, NormForward& op) { return forward(side, op, shape(), dtype()); });
}

// What the oracle saves for the backward pass.
Outputs saved_by_oracle(const Norm& shape, DType dtype) {
  Norm plain = shape;
  plain.options.residual = false;
  Side side = oracle_side();
  return forward(side, *side.backend().make<NormForward>(desc_of(plain, dtype)).take(), plain, dtype);
}

TEST_P(NormParity, Backward) {
  const Norm& s = shape();
  const std::int64_t count = s.rows * s.columns;
  const DType stored = statistic(dtype());
  const Outputs saved = saved_by_oracle(s, dtype());
  const auto tolerance = [&](DType out, std::int64_t terms) {
    return tolerance_of(OpGroup::norm_backward, dtype(), out, terms);
  };
  expect_agreement(kind(), &Backend::make<NormBackward>, desc_of(s, dtype()), [&](Side& side, NormBackward& op) {
    NormBackward::Args args;
    args.dy = side.put(Tensor::normal(dtype(), count, "dy"));
    args.sum = side.put(Tensor::normal(dtype(), count, "x", 1, s.options.mean));
    args.weight = side.put(Tensor::normal(stored, s.columns, "weight", 0.3, 1));
    args.saved_inverse_deviation = side.put(saved[1].value);
    if (s.kind == NormKind::layer) args.saved_mean = side.put(saved[2].value);
    void* dsum = side.put(Tensor::normal(dtype(), count, "dsum"));
    if (s.options.residual) args.dsum = dsum;
    args.dx =
        s.options.in_place ? (s.options.residual ? dsum : const_cast<void*>(args.dy)) : side.space(dtype(), count);
    const auto gradient = [&] {
      return s.options.accumulate ? side.put(Tensor::normal(stored, s.columns, "gradient"))
                                  : side.space(stored, s.columns);
    };
    args.dweight = gradient();
    const bool bias = s.kind == NormKind::layer && s.options.bias;
    if (bias) args.dbias = gradient();
    side.run(op, args);
    Outputs outputs{{"dx", side.get(args.dx, dtype(), count), tolerance(dtype(), s.columns)},
                    {"dweight", side.get(args.dweight, stored, s.columns), tolerance(stored, s.rows)}};
    if (bias) outputs.push_back({"dbias", side.get(args.dbias, stored, s.columns), tolerance(stored, s.rows)});
    return outputs;
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, NormParity,
    on_every_device<Norm>(
        {{"layer_1x1", NormKind::layer, 1, 1},
         {"layer_3x7", NormKind::layer, 3, 7},
         {"layer_65x129_residual", NormKind::layer, 65, 129, {.residual = true}},
         {"layer_40x768_residual_in_place",
          NormKind::layer,
          40,
          768,
          {.residual = true, .accumulate = true, .in_place = true}},
         {"layer_33x100_no_bias_in_place", NormKind::layer, 33, 100, {.bias = false, .in_place = true}},
         {"layer_9x1024_off_centre", NormKind::layer, 9, 1024, {.mean = 4}},
         {"layer_3x40_nan", NormKind::layer, 3, 40, {.mean = nan}},
         {"rms_3x40_nan", NormKind::rms, 3, 40, {.bias = false, .mean = nan}},
         {"layer_700x64_residual", NormKind::layer, 700, 64, {.residual = true}},
         {"layer_3x5000_residual_in_place",
          NormKind::layer,
          3,
          5000,
          {.residual = true, .accumulate = true, .in_place = true}},
         {"rms_2x8000", NormKind::rms, 2, 8000, {.bias = false}},
         {"layer_2x20008", NormKind::layer, 2, 20008},
         {"rms_300x1", NormKind::rms, 300, 1, {.bias = false}},
         {"rms_1x3", NormKind::rms, 1, 3, {.bias = false}},
         {"rms_67x130_residual", NormKind::rms, 67, 130, {.residual = true, .bias = false}},
         {"rms_40x768_residual_in_place",
          NormKind::rms,
          40,
          768,
          {.residual = true, .bias = false, .accumulate = true, .in_place = true}}}),
    name_of_case<Norm>);

}  // namespace
}  // namespace assay::ops::parity
