// Batch norm with residual and ReLU against the oracle.
#include "tests/parity/frame.h"

#include <cmath>
#include <limits>

namespace assay::ops::parity {
namespace {

enum class Place { separate, dx_on_dy, dresidual_on_dy, dx_on_other };

struct BatchNormOptions {
  bool relu = false;
  bool residual = false;
  bool training = true;
  bool accumulate = false;
  bool other = false;  // a second gradient of y
  Place place = Place::separate;
  double mean = 0;
};

struct Batch {
  std::string name;
  std::int64_t rows, channels;
  BatchNormOptions options = {};
};

class BatchNormParity : public Parity<Batch> {
 protected:
  BatchNormDesc desc() const {
    const Batch& s = shape();
    return {.rows = s.rows,
            .channels = s.channels,
            .dtype = dtype(),
            .relu = s.options.relu,
            .residual = s.options.residual,
            .training = s.options.training,
            .accumulate = s.options.accumulate,
            .two_gradients = s.options.other};
  }
};

Outputs forward(Side& side, BatchNormForward& op, const Batch& s, DType dtype, bool update) {
  const std::int64_t count = s.rows * s.channels;
  const DType stored = statistic(dtype);
  const auto tolerance = [&](DType out) { return tolerance_of(OpGroup::batch_norm_forward, dtype, out, s.rows); };
  BatchNormForward::Args args;
  args.x = side.put(Tensor::normal(dtype, count, "x", 1, s.options.mean));
  if (s.options.residual) args.residual = side.put(Tensor::normal(dtype, count, "residual"));
  args.scale = side.put(Tensor::normal(stored, s.channels, "scale", 0.3, 1));
  args.shift = side.put(Tensor::normal(stored, s.channels, "shift"));
  args.running_mean = side.put(Tensor::normal(stored, s.channels, "running mean"));
  args.running_variance = side.put(Tensor::normal(stored, s.channels, "running variance", 0.1, 1));
  args.update_running = update;
  args.y = side.space(dtype, count);
  if (s.options.training) args.saved_mean = side.space(stored, s.channels);
  if (s.options.training) args.saved_inverse_deviation = side.space(stored, s.channels);
  side.run(op, args);
  const auto statistics = [&](const void* data) { return side.get(data, stored, s.channels); };
  Outputs outputs{{"y", side.get(args.y, dtype, count), tolerance(dtype)},
                  {"running mean", statistics(args.running_mean), tolerance(stored)},
                  {"running variance", statistics(args.running_variance), tolerance(stored)}};
  if (!s.options.training) return outputs;
  outputs.push_back({"mean", statistics(args.saved_mean), tolerance(stored)});
  outputs.push_back({"inverse deviation", statistics(args.saved_inverse_deviation), tolerance(stored)});
  return outputs;
}

TEST_P(BatchNormParity, Forward) {
  expect_agreement(kind(), &Backend::make<BatchNormForward>, desc(),
                   [&](Side& side, BatchNormForward& op) { return forward(side, op, shape(), dtype(), true); });
}

TEST_P(BatchNormParity, ForwardAgainLeavesRunningStatistics) {
  if (!shape().options.training) GTEST_SKIP() << "evaluation never updates running statistics";
  expect_agreement(kind(), &Backend::make<BatchNormForward>, desc(),
                   [&](Side& side, BatchNormForward& op) { return forward(side, op, shape(), dtype(), false); });
}

TEST_P(BatchNormParity, Backward) {
  const Batch& s = shape();
  if (!s.options.training) GTEST_SKIP() << "no backward pass in evaluation";
  const std::int64_t count = s.rows * s.channels;
  const DType stored = statistic(dtype());
  Side oracle = oracle_side();
  const Outputs saved = forward(oracle, *oracle.backend().make<BatchNormForward>(desc()).take(), s, dtype(), true);
  const auto tolerance = [&](DType out, double cancelled = 0) {
    return tolerance_of(OpGroup::batch_norm_backward, dtype(), out, s.rows, cancelled);
  };
  const Tensor scale = Tensor::normal(stored, s.channels, "scale", 0.3, 1);
  // dx is dy * scale / deviation minus its projections on 1 and on the normalised x, which nearly cancels with two
  // rows.
  double squares = 0;
  for (std::int64_t c = 0; c < s.channels; ++c) squares += std::pow(scale.at(c) * saved[4].value.at(c), 2);
  const double cancelled = std::isfinite(squares) ? std::sqrt(squares / static_cast<double>(s.channels)) : 0;
  expect_agreement(
      kind(), &Backend::make<BatchNormBackward>, desc(), [&](Side& side, BatchNormBackward& op) -> Outputs {
        BatchNormBackward::Args args;
        void* dy = side.put(Tensor::normal(dtype(), count, "dy"));
        void* other = side.put(Tensor::normal(dtype(), count, "other"));
        args.dy = dy;
        if (s.options.other) args.dy_other = other;
        args.x = side.put(Tensor::normal(dtype(), count, "x", 1, s.options.mean));
        args.y = side.put(saved[0].value);
        args.scale = side.put(scale);
        args.shift = side.put(Tensor::normal(stored, s.channels, "shift"));
        args.saved_mean = side.put(saved[3].value);
        args.saved_inverse_deviation = side.put(saved[4].value);
        const Place place = op.in_place() ? s.options.place : Place::separate;
        args.dx = place == Place::dx_on_dy ? dy : place == Place::dx_on_other ? other : side.space(dtype(), count);
        if (s.options.residual) args.dresidual = place == Place::dresidual_on_dy ? dy : side.space(dtype(), count);
        const auto gradient = [&] {
          return s.options.accumulate ? side.put(Tensor::normal(stored, s.channels, "gradient"))
                                      : side.space(stored, s.channels);
        };
        args.dscale = gradient();
        args.dshift = gradient();
        side.run(op, args);
        Outputs outputs{{"dx", side.get(args.dx, dtype(), count), tolerance(dtype(), cancelled)},
                        {"dscale", side.get(args.dscale, stored, s.channels), tolerance(stored)},
                        {"dshift", side.get(args.dshift, stored, s.channels), tolerance(stored)}};
        if (s.options.residual)
          outputs.push_back({"dresidual", side.get(args.dresidual, dtype(), count), tolerance(dtype())});
        return outputs;
      });
}

INSTANTIATE_TEST_SUITE_P(
    All, BatchNormParity,
    on_every_device<Batch>(
        {{"2x9", 2, 9},
         {"3x1", 3, 1},
         {"plain_49x64", 49, 64},
         {"plain_off_centre", 200, 33, {.mean = 4}},
         {"relu_65x33_on_dy", 65, 33, {.relu = true, .place = Place::dx_on_dy}},
         {"relu_392x128_accumulated", 392, 128, {.relu = true, .accumulate = true}},
         {"residual_relu_65x33", 65, 33, {.relu = true, .residual = true, .place = Place::dresidual_on_dy}},
         {"residual_relu_98x256_join",
          98,
          256,
          {.relu = true, .residual = true, .other = true, .place = Place::dx_on_other}},
         {"residual_50x7_join",
          50,
          7,
          {.residual = true, .accumulate = true, .other = true, .place = Place::dresidual_on_dy}},
         {"relu_residual_20x17_nan", 20, 17, {.relu = true, .residual = true, .mean = nan}},
         {"relu_7000x3", 7000, 3, {.relu = true, .other = true, .place = Place::dx_on_other, .mean = 2}},
         {"residual_relu_2100x65_join", 2100, 65, {.relu = true, .residual = true, .accumulate = true, .other = true}},
         {"relu_3000x64_on_dy", 3000, 64, {.relu = true, .place = Place::dx_on_dy, .mean = -3}},
         {"evaluation_relu_1x65", 1, 65, {.relu = true, .training = false}},
         {"evaluation_relu_20x17_nan", 20, 17, {.relu = true, .training = false, .mean = nan}},
         {"evaluation_residual_relu_20x65", 20, 65, {.relu = true, .residual = true, .training = false}}}),
    name_of_case<Batch>);

}  // namespace
}  // namespace assay::ops::parity
