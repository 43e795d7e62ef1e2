// Layer norm and RMS norm against the oracle.
#include "tests/parity/frame.h"

#include <limits>

namespace assay::ops::parity {
namespace {

struct Norm {
  std::string name;
  NormKind kind;
  std::int64_t rows, columns;
  bool residual = false;
  bool bias = true;
  bool accumulate = false;
  bool in_place = false;  // sum is residual, dx is dsum
  double mean = 0;
};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using NormParity = Parity<Norm>;

NormDesc desc_of(const Norm& shape, DType dtype) {
  return {.kind = shape.kind,
          .rows = shape.rows,
          .columns = shape.columns,
          .dtype = dtype,
          .residual = shape.residual,
          .bias = shape.bias,
          .accumulate = shape.accumulate};
}

Outputs forward(Side& side, NormForward& op, const Norm& shape, DType dtype) {
  const std::int64_t count = shape.rows * shape.columns;
  const DType stored = statistic(dtype);
  const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::norm_forward, dtype, out, shape.columns); };
  NormForward::Args args;
  args.x = side.put(Tensor::normal(dtype, count, "x", 1, shape.mean));
  void* residual = side.put(Tensor::normal(dtype, count, "residual"));
  if (shape.residual) args.residual = residual;
  if (shape.residual) args.sum = shape.in_place ? residual : side.space(dtype, count);
  args.weight = side.put(Tensor::normal(stored, shape.columns, "weight", 0.3, 1));
  if (shape.bias) args.bias = side.put(Tensor::normal(stored, shape.columns, "bias"));
  args.y = side.space(dtype, count);
  if (shape.kind == NormKind::layer) args.saved_mean = side.space(stored, shape.rows);
  args.saved_inverse_deviation = side.space(stored, shape.rows);
  side.run(op, args);
  Outputs outputs{{"y", side.get(args.y, dtype, count), tolerance(dtype)},
                  {"inverse deviation", side.get(args.saved_inverse_deviation, stored, shape.rows), tolerance(stored)}};
  if (shape.residual) outputs.push_back({"sum", side.get(args.sum, dtype, count), tolerance(dtype)});
  if (args.saved_mean) outputs.push_back({"mean", side.get(args.saved_mean, stored, shape.rows), tolerance(stored)});
  return outputs;
}

TEST_P(NormParity, Forward) {
  expect_agreement(kind(), &Backend::norm_forward, desc_of(shape(), dtype()),
                   [&](Side& side, NormForward& op) { return forward(side, op, shape(), dtype()); });
}

// What the oracle saves for the backward pass.
Outputs saved_by_oracle(const Norm& shape, DType dtype) {
  Norm plain = shape;
  plain.residual = false;
  Side side = oracle_side();
  return forward(side, *side.backend().norm_forward(desc_of(plain, dtype)).take(), plain, dtype);
}

TEST_P(NormParity, Backward) {
  const Norm& s = shape();
  const std::int64_t count = s.rows * s.columns;
  const DType stored = statistic(dtype());
  const Outputs saved = saved_by_oracle(s, dtype());
  const auto tolerance = [&](DType out, std::int64_t terms) {
    return tolerance_of(OpGroup::norm_backward, dtype(), out, terms);
  };
  expect_agreement(kind(), &Backend::norm_backward, desc_of(s, dtype()), [&](Side& side, NormBackward& op) {
    NormBackward::Args args;
    args.dy = side.put(Tensor::normal(dtype(), count, "dy"));
    args.sum = side.put(Tensor::normal(dtype(), count, "x", 1, s.mean));
    args.weight = side.put(Tensor::normal(stored, s.columns, "weight", 0.3, 1));
    args.saved_inverse_deviation = side.put(saved[1].value);
    if (s.kind == NormKind::layer) args.saved_mean = side.put(saved[2].value);
    void* dsum = side.put(Tensor::normal(dtype(), count, "dsum"));
    if (s.residual) args.dsum = dsum;
    args.dx = s.in_place ? (s.residual ? dsum : const_cast<void*>(args.dy)) : side.space(dtype(), count);
    const auto gradient = [&] {
      return s.accumulate ? side.put(Tensor::normal(stored, s.columns, "gradient")) : side.space(stored, s.columns);
    };
    args.dweight = gradient();
    const bool bias = s.kind == NormKind::layer && s.bias;
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
    on_every_device<Norm>({{"layer_1x1", NormKind::layer, 1, 1},
                           {"layer_3x7", NormKind::layer, 3, 7},
                           {"layer_65x129_residual", NormKind::layer, 65, 129, true},
                           {"layer_40x768_residual_in_place", NormKind::layer, 40, 768, true, true, true, true},
                           {"layer_33x100_no_bias_in_place", NormKind::layer, 33, 100, false, false, false, true},
                           {"layer_9x1024_off_centre", NormKind::layer, 9, 1024, false, true, false, false, 4},
                           {"layer_3x40_nan", NormKind::layer, 3, 40, false, true, false, false, nan},
                           {"rms_3x40_nan", NormKind::rms, 3, 40, false, false, false, false, nan},
                           {"layer_700x64_residual", NormKind::layer, 700, 64, true},
                           {"layer_3x5000_residual_in_place", NormKind::layer, 3, 5000, true, true, true, true},
                           {"rms_2x8000", NormKind::rms, 2, 8000, false, false},
                           {"layer_2x20008", NormKind::layer, 2, 20008},
                           {"rms_300x1", NormKind::rms, 300, 1, false, false},
                           {"rms_1x3", NormKind::rms, 1, 3, false, false},
                           {"rms_67x130_residual", NormKind::rms, 67, 130, true, false},
                           {"rms_40x768_residual_in_place", NormKind::rms, 40, 768, true, false, true, true}}),
    name_of_case<Norm>);

}  // namespace
}  // namespace assay::ops::parity
