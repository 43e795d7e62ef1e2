// Steps that multiply in 8 bits, on the reference backend: their distance from other steps, and how their scales
// evolve.
#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/thread_communicator.h"
#include "tests/unit/nn/small_models.h"
#include "workloads/nn/layers/embedding.h"
#include "workloads/nn/layers/losses.h"
#include "workloads/nn/step_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace assay::nn {
namespace {

using test::bytes;
using test::losses;
using test::small_options;
using test::SmallStep;

StepOptions fp8_options(const std::string& kind) { return small_options(kind, "fp8"); }

float* part_of(TrainingStep& step, const std::string& name) {
  for (const StatePart& part : step.state())
    if (part.name == name) return static_cast<float*>(part.data);
  ADD_FAILURE() << "no " << name;
  return nullptr;
}

// An embedding, a linear layer as in blocks, and a head.
class OneLayer final : public Model {
 public:
  static constexpr std::int64_t vocabulary = 11, in = 48, out = 80;

  const std::string& name() const override { return name_; }
  InputSpec input() const override { return {.classes = vocabulary}; }
  std::vector<ParameterSpec> parameters() const override {
    return {{.name = "embedding.token.weight", .shape = {vocabulary, in}, .deviation = 1},
            {.name = "layer.weight", .shape = {out, in}, .deviation = 0.1},
            {.name = "layer.bias", .shape = {out}, .deviation = 0.1},
            {.name = "head.weight", .shape = {vocabulary, out}, .deviation = 0.1}};
  }
  ModelCost cost(const BatchShape&) const override { return {}; }
  void build(Builder& builder) const override {
    Embedding embedding(builder, {.vocabulary = vocabulary, .width = in});
    Linear layer(builder, "layer", in, out, true, builder.fp8());
    const Tensor y = layer.forward(builder, embedding.forward(builder), builder.batch().samples * builder.batch().seq);
    const LmHead head(builder.parameter("head.weight"), {}, vocabulary, out);
    const Tensor dy = head.forward(builder, y);
    if (!builder.training()) return;
    builder.phase(Phase::backward);
    embedding.backward(builder, layer.backward(builder, dy));
  }

 private:
  std::string name_ = "one-layer";
};

// Gradients of one step by name, and its loss under "loss".
std::map<std::string, std::vector<double>> gradients_in(const char* precision) {
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  StepOptions options;
  options.precision = precision_from(precision);
  options.batch = {.samples = 8, .seq = 32};
  TrainingStep step(OneLayer(), options, *device, ops::make_reference_backend(), *comm);
  step.allocate();
  step.initialise(1);
  test::fill(step.inputs(0), OneLayer::vocabulary, 3);
  std::map<std::string, std::vector<double>> all;
  all["loss"] = {step.step(0).loss};
  for (const StatePart& part : step.gradients()) {
    const auto elements = part.bytes / size_of(part.dtype);
    std::vector<double>& values = all[part.name];
    for (std::size_t i = 0; i < elements; ++i)
      values.push_back(part.dtype == DType::f64 ? static_cast<const double*>(part.data)[i]
                                                : static_cast<double>(static_cast<const float*>(part.data)[i]));
  }
  return all;
}

double relative_error(const std::vector<double>& got, const std::vector<double>& want) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(difference / norm);
}

// Rounding to 3 bits of mantissa has an error of 2.6 % (root mean square), to 2 bits of 5.2 %. The errors of the terms
// of a sum are independent, so products inherit those of their operands: 3.7 % forward, 5.8 % backward.
TEST(Fp8Linear, MatchesF64WithinRounding) {
  const auto want = gradients_in("f64"), got = gradients_in("fp8"), half = gradients_in("bf16");
  EXPECT_NEAR(got.at("loss")[0], want.at("loss")[0], 5e-3 * want.at("loss")[0]);
  for (const char* name : {"gradients/layer.weight", "gradients/embedding.token.weight"}) {
    const double error = relative_error(got.at(name), want.at(name));
    EXPECT_LT(error, 0.08) << name;
    EXPECT_GT(error, 0.02) << name << " was not rounded to 8 bits";
    EXPECT_LT(relative_error(half.at(name), want.at(name)), 0.02) << name;
  }
  // The bias gradient is summed before rounding. The head sees the error of the forward product twice: in y and in the
  // softmax.
  EXPECT_LT(relative_error(got.at("gradients/layer.bias"), want.at("gradients/layer.bias")), 0.03);
  EXPECT_LT(relative_error(got.at("gradients/head.weight"), want.at("gradients/head.weight")), 0.06);
}

class Fp8Models : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Fp8Models, testing::Values("wide_gpt2", "wide_llama", "wide_bert"),
                         [](const auto& param) { return std::string(param.param); });

// See tests/unit/nn/gpu_step_test.cpp for the 6 %.
TEST_P(Fp8Models, TrainLikeBf16) {
  SmallStep fp8(GetParam(), fp8_options(GetParam())), bf16(GetParam(), small_options(GetParam(), "bf16"));
  const auto got = losses(fp8, 20, 1e-3), want = losses(bf16, 20, 1e-3);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 6e-2 * want.front()) << "step " << i;
  EXPECT_LT(want.back(), 0.7 * want.front());
  EXPECT_NE(got, want);
}

TEST_P(Fp8Models, CheckpointingDoesNotChangeABit) {
  StepOptions options = fp8_options(GetParam());
  options.accumulate = 2;
  SmallStep none(GetParam(), options);
  options.checkpointing = Checkpointing::full;
  SmallStep full(GetParam(), options);
  EXPECT_EQ(losses(none, 3), losses(full, 3));
  EXPECT_EQ(bytes(none.step), bytes(full.step));
}

TEST_P(Fp8Models, RestoredStateContinuesBitwiseEqual) {
  SmallStep small(GetParam(), fp8_options(GetParam()));
  losses(small, 2);
  const auto saved = bytes(small.step);
  const auto want = losses(small, 2);
  SmallStep other(GetParam(), fp8_options(GetParam()));
  test::restore(other.step, saved);
  EXPECT_EQ(want, losses(other, 2));
  EXPECT_EQ(bytes(small.step), bytes(other.step));
}

TEST_P(Fp8Models, EvaluationRoundsLikeTheNextStepAndChangesNothing) {
  SmallStep small(GetParam(), fp8_options(GetParam()));
  small.step.step(1e-2);
  const auto before = bytes(small.step);
  const double evaluated = small.step.evaluate().loss;
  EXPECT_EQ(before, bytes(small.step));
  EXPECT_DOUBLE_EQ(evaluated, small.step.step(1e-2).loss);
}

// Magnitudes are maxima over all micro-batches on all ranks, but sums of gradients round differently.
TEST_P(Fp8Models, RanksRoundAlikeAndMatchOneRankThatAccumulates) {
  const std::string kind = GetParam();
  StepOptions options = fp8_options(kind);
  options.bucket_bytes = 4096;
  options.accumulate = 2;
  SmallStep alone(kind, options);
  const auto want = losses(alone, 4, 1e-3);
  options.accumulate = 1;
  std::vector<std::vector<std::vector<std::byte>>> states(2);
  assay::test::run_ranks(2, [&](Communicator& comm) {
    SmallStep small(kind, options, &comm);
    const auto got = losses(small, 4, 1e-3);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-2 * want.front()) << "step " << i;
    states[static_cast<std::size_t>(comm.rank())] = bytes(small.step);
  });
  EXPECT_EQ(states[0], states[1]);
}

// The slot of a tensor among the scales.
std::size_t slot_of(const std::string& kind, const std::string& name) {
  const StepPlan plan(*test::model(kind), fp8_options(kind), {}, ops::make_reference_backend());
  const auto& list = plan.layout.rounded;
  const auto at =
      std::find_if(list.begin(), list.end(), [&](const RoundedTensor& entry) { return entry.name == name; });
  EXPECT_NE(at, list.end()) << name;
  return static_cast<std::size_t>(at - list.begin());
}

TEST(Fp8Scales, AreTheMaximumOverTheLargestMagnitudeFromTheFirstStep) {
  SmallStep small("wide_llama", fp8_options("wide_llama"));
  const std::string name = "block.1.mlp.out.weight";
  const std::size_t slot = slot_of("wide_llama", name);
  const float* weight = part_of(small.step, "weights/" + name);
  float largest = 0;
  for (int i = 0; i < 32 * 48; ++i) largest = std::max(largest, std::abs(weight[i]));
  small.step.step(0);
  const auto length = static_cast<std::size_t>(fp8_scaling.history);
  const float* history = part_of(small.step, "fp8/amax_history") + slot * length;
  // One entry from the calibration, one from the step itself.
  EXPECT_EQ(history[length - 1], largest);
  EXPECT_EQ(history[length - 2], largest);
  EXPECT_EQ(history[length - 3], 0);
  EXPECT_EQ(part_of(small.step, "fp8/scale")[slot], 448 / largest);
  // Gradients too, with a maximum of 57,344.
  const std::size_t gradient = slot_of("wide_llama", "block.0.attention.qkv/gradient");
  const float magnitude = part_of(small.step, "fp8/amax_history")[gradient * length + length - 1];
  EXPECT_GT(magnitude, 0);
  EXPECT_EQ(part_of(small.step, "fp8/scale")[gradient], 57344 / magnitude);
}

TEST(Fp8Scales, ThreePerLinearLayerOfABlockAndNoneElsewhere) {
  const StepPlan plan(*test::model("wide_bert"), fp8_options("wide_bert"), {}, ops::make_reference_backend());
  EXPECT_EQ(plan.layout.rounded.size(), 3u * 4u * 2u);
  for (const RoundedTensor& tensor : plan.layout.rounded) {
    EXPECT_TRUE(tensor.name.starts_with("block.")) << tensor.name;
    EXPECT_EQ(tensor.dtype, tensor.name.ends_with("/gradient") ? DType::fp8_e5m2 : DType::fp8_e4m3) << tensor.name;
  }
}

// A weight that suddenly grows by a factor of 1,000 saturates in the first step, is scaled correctly from the next one
// on, and is forgotten once it has left the history.
TEST(Fp8Scales, AnOutlierSaturatesAndIsForgotten) {
  SmallStep small("wide_gpt2", fp8_options("wide_gpt2"));
  const std::string name = "block.0.mlp.in.weight";
  const std::size_t slot = slot_of("wide_gpt2", name);
  const auto scale = [&] { return part_of(small.step, "fp8/scale")[slot]; };
  const double usual = small.step.step(0).loss;
  const float before = scale();
  float* weight = part_of(small.step, "weights/" + name);
  const float kept = weight[5];
  weight[5] = 1000 * 448 / before;
  const StepResult blown = small.step.step(0);
  EXPECT_FALSE(blown.skipped);
  EXPECT_TRUE(std::isfinite(blown.loss));
  EXPECT_NEAR(blown.loss, usual, 0.2 * usual) << "saturated at the largest number of the previous scale";
  EXPECT_FLOAT_EQ(scale(), before / 1000);
  EXPECT_NE(small.step.step(0).loss, blown.loss);
  part_of(small.step, "weights/" + name)[5] = kept;
  for (std::int64_t i = 1; i < fp8_scaling.history; ++i) {
    EXPECT_FALSE(small.step.step(0).skipped);
    EXPECT_FLOAT_EQ(scale(), before / 1000) << i;
  }
  small.step.step(0);
  EXPECT_EQ(scale(), before);
  EXPECT_NEAR(small.step.step(0).loss, usual, 0.02 * usual);
}

// Rounding to 8 bits turns an infinity into a finite number, and the step would continue.
TEST(Fp8Scales, AnInfinityIsDetectedBeforeRounding) {
  SmallStep small("wide_llama", fp8_options("wide_llama"));
  small.step.step(0);
  for (const StatePart& part : small.step.state())
    if (part.name == "weights/block.1.norm2.weight")
      std::fill_n(static_cast<float*>(part.data), part.bytes / sizeof(float), 3e38f);
  const auto before = bytes(small.step);
  EXPECT_TRUE(small.step.step(1e-2).skipped);
  const auto after = bytes(small.step);
  const auto parts = small.step.state();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].name.starts_with("weights/")) {
      EXPECT_EQ(before[i], after[i]) << parts[i].name;
    }
  EXPECT_TRUE(small.step.first_non_finite().starts_with("block.1.norm2")) << small.step.first_non_finite();
}

TEST(Fp8, IsRejectedForModelsWithoutSuchLayers) {
  EXPECT_EQ(assay::test::refusal([] { SmallStep("basic", fp8_options("basic")); }),
            "precision fp8: no layer of this model multiplies in 8 bits; use bf16");
}

TEST(Fp8, ActivationsTakeLessMemory) {
  const auto planned = [](const char* precision) {
    StepOptions options = small_options("wide_llama", precision);
    options.batch = {.samples = 64, .seq = 8};
    return plan_memory(*test::model("wide_llama"), options);
  };
  const MemoryPlan fp8 = planned("fp8"), bf16 = planned("bf16");
  EXPECT_LT(fp8.activations, bf16.activations);
  EXPECT_EQ(fp8.optimizer, bf16.optimizer);
  EXPECT_EQ(fp8.gradients, bf16.gradients);
}

}  // namespace
}  // namespace assay::nn
