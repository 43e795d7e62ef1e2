// Gradients of whole models against central differences, on the oracle in f64.
#include "tests/unit/nn/small_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace assay::nn {
namespace {

struct Case {
  std::string kind;
  Checkpointing checkpointing = Checkpointing::none;
  std::int64_t accumulate = 1;
  double smoothing = 0;
};

class ModelGradients : public testing::TestWithParam<Case> {};

TEST_P(ModelGradients, EqualDifferences) {
  const Case& c = GetParam();
  StepOptions options = test::small_options(c.kind);
  options.checkpointing = c.checkpointing;
  options.accumulate = c.accumulate;
  options.smoothing = c.smoothing;
  test::SmallStep small(c.kind, options);
  TrainingStep& step = small.step;
  // A learning rate of 0 does not change the weights.
  step.step(0.0);
  std::map<std::string, std::vector<double>> gradients;
  for (const StatePart& part : step.gradients()) {
    const auto* data = static_cast<const double*>(part.data);
    gradients[part.name.substr(part.name.find('/') + 1)].assign(data, data + part.bytes / sizeof(double));
  }
  const Rng rng(7, "elements");
  std::uint64_t draw = 0;
  for (const StatePart& part : step.state()) {
    if (!part.name.starts_with("weights/")) continue;
    const std::string name = part.name.substr(8);
    const std::vector<double>& gradient = gradients.at(name);
    double largest = 0;
    for (const double g : gradient) largest = std::max(largest, std::abs(g));
    auto* weights = static_cast<double*>(part.data);
    for (int sample = 0; sample < 4; ++sample) {
      const std::size_t i = rng.below(draw++, gradient.size());
      const double original = weights[i], h = 1e-5;
      weights[i] = original + h;
      const double above = step.step(0.0).loss;
      weights[i] = original - h;
      const double below = step.step(0.0).loss;
      weights[i] = original;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * h), 1e-6 * largest + 2e-9) << name << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelGradients,
                         testing::Values(Case{"gpt2"}, Case{"gpt2", Checkpointing::full, 2}, Case{"llama"},
                                         Case{"llama", Checkpointing::full, 1, 0.1}, Case{"qwen2"}, Case{"bert"},
                                         Case{"bert", Checkpointing::full, 2}, Case{"basic"},
                                         Case{"basic", Checkpointing::full, 1, 0.1}, Case{"bottleneck"},
                                         Case{"bottleneck", Checkpointing::none, 2}),
                         [](const auto& tested) {
                           return tested.param.kind +
                                  (tested.param.checkpointing == Checkpointing::full ? "_full" : "") +
                                  (tested.param.accumulate > 1 ? "_accumulated" : "") +
                                  (tested.param.smoothing > 0 ? "_smoothed" : "");
                         });

}  // namespace
}  // namespace assay::nn
