// Activations, casts, sums, optimizers and the gradient norm against the oracle.
#include "tests/parity/frame.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

namespace assay::ops::parity {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
struct Activation {
  std::string name;
  ActivationKind kind;
  std::int64_t rows, columns;
  bool in_place = false;
  double deviation = 2;
};

class ActivationParity : public Parity<Activation> {
 protected:
  ActivationDesc desc() const {
    return {.kind = shape().kind, .rows = shape().rows, .columns = shape().columns, .dtype = dtype()};
  }
  std::int64_t count() const { return shape().rows * shape().columns; }
  std::int64_t x_count() const { return shape().kind == ActivationKind::silu_gate ? 2 * count() : count(); }
  Tensor x() const { return Tensor::normal(dtype(), x_count(), "x", shape().deviation); }
  Tolerance tolerance() const { return tolerance_of(OpGroup::activation, dtype(), dtype(), 1); }
};

TEST_P(ActivationParity, Forward) {
  expect_agreement(kind(), &Backend::make<ActivationForward>, desc(),
                   [&](Side& side, ActivationForward& op) -> Outputs {
                     ActivationForward::Args args;
                     args.x = side.put(x());
                     args.y = side.space(dtype(), count());
                     side.run(op, args);
                     return {{"y", side.get(args.y, dtype(), count()), tolerance()}};
                   });
}

TEST_P(ActivationParity, Backward) {
  expect_agreement(kind(), &Backend::make<ActivationBackward>, desc(),
                   [&](Side& side, ActivationBackward& op) -> Outputs {
                     ActivationBackward::Args args;
                     void* in = side.put(x());
                     args.x = in;
                     args.dy = side.put(Tensor::normal(dtype(), count(), "dy"));
                     args.dx = shape().in_place ? in : side.space(dtype(), x_count());
                     side.run(op, args);
                     return {{"dx", side.get(args.dx, dtype(), x_count()), tolerance()}};
                   });
}

INSTANTIATE_TEST_SUITE_P(
    All, ActivationParity,
    on_every_device<Activation>({{"gelu_tanh_1x1", ActivationKind::gelu_tanh, 1, 1},
                                 {"gelu_tanh_33x129_in_place", ActivationKind::gelu_tanh, 33, 129, true},
                                 {"gelu_tanh_far_20x64", ActivationKind::gelu_tanh, 20, 64, false, 20},
                                 {"gelu_erf_65x77_in_place", ActivationKind::gelu_erf, 65, 77, true},
                                 {"gelu_erf_far_20x64", ActivationKind::gelu_erf, 20, 64, false, 20},
                                 {"gelu_tanh_nan", ActivationKind::gelu_tanh, 2, 40, false, nan},
                                 {"gelu_erf_nan", ActivationKind::gelu_erf, 2, 40, false, nan},
                                 {"silu_gate_nan", ActivationKind::silu_gate, 2, 40, false, nan},
                                 {"silu_gate_3x1", ActivationKind::silu_gate, 3, 1},
                                 {"silu_gate_31x130_in_place", ActivationKind::silu_gate, 31, 130, true},
                                 {"silu_gate_70x264", ActivationKind::silu_gate, 70, 264},
                                 {"silu_gate_far_20x64", ActivationKind::silu_gate, 20, 64, false, 20}}),
    name_of_case<Activation>);

struct Flat {
  std::string name;
  ElementwiseDesc desc;  // in and out f64: the dtype under test
  bool in_place = false;
  std::int64_t skipped = 0;  // elements before the first, to misalign it
};

using ElementwiseParity = Parity<Flat>;

TEST_P(ElementwiseParity, Run) {
  ElementwiseDesc d = shape().desc;
  if (d.in == DType::f64) d.in = dtype();
  if (d.out == DType::f64) d.out = dtype();
  expect_agreement(kind(), &Backend::make<Elementwise>, d, [&](Side& side, Elementwise& op) -> Outputs {
    Elementwise::Args args;
    const std::int64_t skipped = shape().skipped, count = d.count + skipped;
    const auto after = [&](void* data, DType dtype) {
      return static_cast<std::byte*>(data) + static_cast<std::size_t>(skipped) * size_of(dtype);
    };
    void* a = after(side.put(Tensor::normal(d.in, count, "a")), d.in);
    args.a = a;
    if (d.kind != ElementwiseKind::cast) args.b = after(side.put(Tensor::normal(d.in, count, "b")), d.in);
    args.out = shape().in_place ? a : after(side.space(d.out, count), d.out);
    side.run(op, args);
    return {{"out", side.get(args.out, d.out, d.count), tolerance_of(OpGroup::elementwise, d.in, d.out, 1)}};
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, ElementwiseParity,
    on_every_device<Flat>(
        {{"cast_from_f32_1", {.kind = ElementwiseKind::cast, .count = 1, .in = DType::f32, .out = DType::f64}},
         {"cast_from_f32_70001", {.kind = ElementwiseKind::cast, .count = 70001, .in = DType::f32, .out = DType::f64}},
         {"cast_to_f32_333", {.kind = ElementwiseKind::cast, .count = 333, .in = DType::f64, .out = DType::f32}},
         {"add_4099", {.kind = ElementwiseKind::add, .count = 4099, .in = DType::f64, .out = DType::f64}},
         {"add_into_f32_65", {.kind = ElementwiseKind::add, .count = 65, .in = DType::f64, .out = DType::f32}},
         {"combine_in_place_1531",
          {.kind = ElementwiseKind::combine,
           .count = 1531,
           .in = DType::f32,
           .out = DType::f32,
           .alpha = 0.81,
           .beta = -0.73},
          true},
         {"add_misplaced_777",
          {.kind = ElementwiseKind::add, .count = 777, .in = DType::f64, .out = DType::f64},
          false,
          1},
         {"add_in_place_1000",
          {.kind = ElementwiseKind::add, .count = 1000, .in = DType::f64, .out = DType::f64},
          true}}),
    name_of_case<Flat>);

// The dtype under test is that of the gradients and of the weights' rounded copy; masters are f32.
struct Update {
  std::string name;
  OptimizerKind kind;
  std::int64_t count;
  std::vector<DecaySegment> segments;
  std::int64_t step = 1;
  bool found_infinity = false;
};

using OptimizerParity = Parity<Update>;

// Segments of `length` elements; neighbours have different decays.
std::vector<DecaySegment> segments_of(std::int64_t length, std::int64_t count) {
  std::vector<DecaySegment> segments;
  for (std::int64_t begin = 0; begin < count; begin += length)
    segments.push_back({begin, std::min(begin + length, count), segments.size() % 2 == 0 ? 0.1 : 0.0});
  return segments;
}

void* put_state(Side& side, const StepState& state) {
  static_assert(sizeof(StepState) % sizeof(std::int64_t) == 0);
  Tensor tensor(DType::i64, sizeof(StepState) / sizeof(std::int64_t));
  std::memcpy(tensor.data(), &state, sizeof(state));
  return side.put(tensor);
}

TEST_P(OptimizerParity, Step) {
  const Update& s = shape();
  OptimizerDesc d;
  d.kind = s.kind;
  d.count = s.count;
  d.segments = s.segments;
  d.gradient = d.parameter = dtype();
  StepState state;
  state.step = s.step;
  state.learning_rate = 3e-2f;
  state.coefficient = 0.41f;
  state.found_infinity = s.found_infinity;
  expect_agreement(kind(), &Backend::make<Optimizer>, d, [&](Side& side, Optimizer& op) {
    Optimizer::Args args;
    args.state = static_cast<const StepState*>(put_state(side, state));
    args.master = side.put(Tensor::normal(d.master, d.count, "master"));
    args.gradient = side.put(Tensor::normal(d.gradient, d.count, "gradient"));
    args.moment1 = side.put(Tensor::normal(d.master, d.count, "moment 1", 0.1));
    if (d.kind == OptimizerKind::adamw)
      args.moment2 = side.put(Tensor::normal(d.master, d.count, "moment 2", 0.02, 0.1));
    if (d.parameter != d.master) args.parameter = side.put(Tensor::normal(d.parameter, d.count, "parameter"));
    side.run(op, args);
    const auto written = [&](const char* name, const void* data, DType type) {
      return Output{name, side.get(data, type, d.count), tolerance_of(OpGroup::optimizer, d.master, type, 1)};
    };
    Outputs outputs{written("master", args.master, d.master), written("moment 1", args.moment1, d.master)};
    if (args.moment2) outputs.push_back(written("moment 2", args.moment2, d.master));
    if (args.parameter) outputs.push_back(written("parameter", args.parameter, d.parameter));
    return outputs;
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerParity,
    on_every_device<Update>(
        {{"adamw_1", OptimizerKind::adamw, 1, {{0, 1, 0.1}}},
         {"adamw_5003_two_segments", OptimizerKind::adamw, 5003, {{0, 4001, 0.1}, {4001, 5003, 0}}, 7},
         {"adamw_4099_short_segments", OptimizerKind::adamw, 4099, segments_of(7, 4099), 3},
         {"adamw_late", OptimizerKind::adamw, 130, {{0, 130, 0}}, 100000},
         {"adamw_infinity", OptimizerKind::adamw, 77, {{0, 77, 0.1}}, 2, true},
         {"sgd_3001_three_segments", OptimizerKind::sgd, 3001, {{0, 17, 0}, {17, 2050, 1e-2}, {2050, 3001, 0}}, 3},
         {"sgd_infinity", OptimizerKind::sgd, 65, {{0, 65, 0.1}}, 2, true}}),
    name_of_case<Update>);

struct Whole {
  std::string name;
  std::int64_t count;
  double max_norm = 0;
  double loss_scale = 1;
  double non_finite = 0;    // the value of one element; 0: all are finite
  std::int64_t valid = -1;  // targets, out of the 1,000 that the gradients were scaled for; -1: not counted
  std::int64_t pieces = 0;  // summed apart, every third held by another rank; 0: all at once
};

using GradientNormParity = Parity<Whole>;

TEST_P(GradientNormParity, State) {
  const Whole& s = shape();
  GradientNormDesc d{.count = s.count, .gradient = dtype()};
  for (std::int64_t i = s.pieces; i-- > 0;) {
    const std::int64_t begin = i * s.count / s.pieces, end = (i + 1) * s.count / s.pieces;
    d.pieces.push_back({begin, end - begin, i % 3 != 2});
  }
  expect_agreement(kind(), &Backend::make<GradientNorm>, d, [&](Side& side, GradientNorm& op) -> Outputs {
    StepState state;
    state.max_norm = static_cast<float>(s.max_norm);
    state.loss_scale = static_cast<float>(s.loss_scale);
    state.found_infinity = s.non_finite == 0;  // the op must overwrite it
    Tensor gradient = Tensor::normal(d.gradient, d.count, "gradient", s.loss_scale);
    if (s.non_finite != 0) gradient.set(d.count / 2, s.non_finite);
    GradientNorm::Args args;
    args.gradient = side.put(gradient);
    args.state = static_cast<StepState*>(put_state(side, state));
    if (s.valid >= 0) {
      Tensor valid(DType::i64, 1);
      std::memcpy(valid.data(), &s.valid, sizeof s.valid);
      args.valid = static_cast<const std::int64_t*>(side.put(valid));
      args.expected = 1000;
    }
    side.run(op, args);
    const Tensor words = side.get(args.state, DType::i64, sizeof(StepState) / sizeof(std::int64_t));
    const auto* after = static_cast<const StepState*>(words.data());
    Tensor found(DType::f64, 1), numbers(DType::f32, 2);
    found.set(0, after->found_infinity != 0);
    if (after->found_infinity == 0) {
      numbers.set(0, static_cast<double>(after->norm));
      numbers.set(1, static_cast<double>(after->coefficient));
    }
    return {{"found infinity", found, {}},
            {"norm and coefficient", numbers, tolerance_of(OpGroup::gradient_norm, DType::f32, DType::f32, 1)}};
  });
}

INSTANTIATE_TEST_SUITE_P(All, GradientNormParity,
                         on_every_device<Whole>({{"one", 1},
                                                 {"clipped_100003", 100003, 1},
                                                 {"below_the_limit_99", 99, 1e6},
                                                 {"scaled_1021", 1021, 2, 1024},
                                                 {"some_targets_valid_777", 777, 0.5, 8, 0, 613},
                                                 {"no_target_valid_77", 77, 1, 1, 0, 0},
                                                 {"infinity", 4097, 1, 1, infinity},
                                                 {"negative_infinity", 33, 0, 8, -infinity},
                                                 {"nan", 70000, 1, 1, nan},
                                                 {"pieces_300007", 300007, 1, 8, 0, -1, 5},
                                                 {"pieces_not_finite_41", 41, 1, 1, infinity, -1, 2}}),
                         name_of_case<Whole>);

}  // namespace
}  // namespace assay::ops::parity
