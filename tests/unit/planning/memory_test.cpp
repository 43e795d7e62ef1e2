// Memory of training by formulas: methods, optimizers, ZeRO, offload; and 1,000 random configurations.
#include "workloads/planning/memory.h"
#include "harness/core/words.h"
#include "tests/support/published_models.h"
#include "workloads/planning/search.h"
#include "workloads/planning/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace assay::planning {
namespace {

using architecture::Architecture;
using test::published_architecture;

Terms terms_of(const Architecture& model, const Step& step, const Layout& layout = {}) {
  return memory_of(model, step, layout, 0).front().terms;
}

TEST(PlannedMemory, AdaptersAreWhatPeftCounts) {
  const Architecture llama = published_architecture("llama-2-7b");
  Step step{.seq = 4096, .method = Method::lora, .lora_rank = 16, .lora_targets = Targets::attention};
  EXPECT_EQ(trained_parameters(llama, step), 32 * 4 * 16 * (4096 + 4096));
  step.lora_targets = Targets::all;
  EXPECT_EQ(trained_parameters(llama, step), 39976960);  // "trainable params" of PEFT for all linear layers
  step.method = Method::full;
  EXPECT_EQ(trained_parameters(llama, step), 6738415616);
}

TEST(PlannedMemory, QloraQuantisesMatricesOnly) {
  const Architecture llama = published_architecture("llama-2-7b");
  const Step step{.seq = 4096, .method = Method::qlora};
  const double rest = 2 * 32000.0 * 4096 + 65 * 4096, matrices = 6738415616 - rest, adapters = 39976960;
  const Terms terms = terms_of(llama, step);
  EXPECT_NEAR(nf4_bits, 4.127, 5e-4);
  EXPECT_NEAR(terms.weights, matrices * nf4_bits / 8 + 2 * rest + 6 * adapters, 1e3);
  EXPECT_EQ(terms.gradients, 4 * adapters);
  EXPECT_EQ(terms.optimizer, 8 * adapters);
  // Frozen matrices do not need their inputs.
  Step attention = step;
  attention.lora_targets = Targets::attention;
  EXPECT_LT(terms_of(llama, attention).activations, terms.activations);
  // Weights that a file quantises stay as they are stored.
  const Architecture oss = published_architecture("gpt-oss-20b");
  EXPECT_EQ(frozen_bits(oss, step, oss.layer(0).weights.front()), 16);
}

TEST(PlannedMemory, OptimizersHaveTheirState) {
  const Architecture llama = published_architecture("llama-3.1-8b");
  Step step{.seq = 128};
  const auto per_parameter = [&](Optimizer optimizer) {
    step.optimizer = optimizer;
    return terms_of(llama, step).optimizer / 8030261248;
  };
  EXPECT_DOUBLE_EQ(per_parameter(Optimizer::adamw), 8);
  EXPECT_DOUBLE_EQ(per_parameter(Optimizer::sgd), 4);
  EXPECT_NEAR(per_parameter(Optimizer::adamw_8bit), 2 + 8.0 / 256, 1e-4);
  EXPECT_LT(per_parameter(Optimizer::adafactor), 0.01);
  EXPECT_GT(per_parameter(Optimizer::adafactor), 0);
}

TEST(PlannedMemory, ZeroDividesState) {
  const Architecture llama = published_architecture("llama-3.1-8b");
  const double parameters = 8030261248, d = 16;
  const auto state = [&](Precision precision, int zero) {
    const Terms terms = terms_of(llama, {.seq = 128, .precision = precision}, {.dp = 16, .zero = zero});
    return (terms.weights + terms.gradients + terms.optimizer) / parameters;
  };
  const std::array<double, 4> bf16 = {18, 6 + 12 / d, 2 + 16 / d, 18 / d}, f32 = {16, 8 + 8 / d, 4 + 12 / d, 16 / d};
  for (int zero = 0; zero <= 3; ++zero) {
    EXPECT_NEAR(state(Precision::bf16, zero), bf16.at(zero), 1e-6) << zero;
    EXPECT_NEAR(state(Precision::f32, zero), f32.at(zero), 1e-6) << zero;
  }
}

TEST(PlannedMemory, OffloadMovesStateToTheHost) {
  const Architecture llama = published_architecture("llama-3.1-8b");
  const double parameters = 8030261248;
  Step step{.seq = 128, .accumulate = 2, .offload = Offload::optimizer};
  const StageMemory optimizer = memory_of(llama, step, {}, 0).front();
  EXPECT_DOUBLE_EQ(optimizer.host, 12 * parameters);
  EXPECT_EQ(optimizer.terms.optimizer, 0);
  EXPECT_DOUBLE_EQ(optimizer.terms.weights, 2 * parameters);
  EXPECT_DOUBLE_EQ(offload_bytes(llama, step, {}), 4 * parameters);  // gradients, in f32
  step.offload = Offload::weights;
  const StageMemory weights = memory_of(llama, step, {}, 0).front();
  EXPECT_DOUBLE_EQ(weights.host, 18 * parameters);
  EXPECT_EQ(weights.terms.weights + weights.terms.gradients, 0);
  EXPECT_GT(weights.terms.communication, 2 * 128256.0 * 4096);
  EXPECT_DOUBLE_EQ(offload_bytes(llama, step, {}), 2 * 4 * parameters);
  step.recompute = Recompute::full;
  EXPECT_DOUBLE_EQ(offload_bytes(llama, step, {}), 2 * 3 * 2 * parameters);
}

TEST(PlannedMemory, ExpertsAreDividedByEp) {
  const Architecture mixtral = published_architecture("mixtral-8x7b");
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, rest = 46702792704 - experts;
  const Terms terms = terms_of(mixtral, {.seq = 128}, {.dp = 8, .ep = 8});
  EXPECT_NEAR(terms.gradients, 4 * (rest + experts / 8), 1);
  // Of each expert there is one copy, which nobody shares.
  EXPECT_NEAR(terms_of(mixtral, {.seq = 128}, {.dp = 8, .ep = 8, .zero = 3}).gradients, 4 * (rest / 8 + experts / 8),
              1);
}

TEST(PlannedMemory, NearestLayoutsFitAndSayWhatChanged) {
  const Architecture llama = published_architecture("llama-3.1-70b");
  const Step step{.micro_batch = 4, .seq = 4096};
  const Device gpu{.bytes = 80e9, .alone = 1e9, .together = 2e9};
  const std::vector<Found> found = nearest_that_fit(llama, step, {}, gpu);
  ASSERT_FALSE(found.empty());
  for (const Found& each : found) {
    EXPECT_LE(each.bytes, gpu.left(each.layout.ranks()));
    EXPECT_EQ(each.bytes, largest(memory_of(llama, each.step, each.layout, 80000000000)));
    EXPECT_FALSE(problem_of(llama, each.step, each.layout));
    EXPECT_THAT(each.changes(step, {}), testing::Not(testing::IsEmpty()));
  }
  // 18 bytes of 70.6 G parameters: 16 GPUs of 78 GB could not hold them.
  EXPECT_GE(std::ranges::min(found, {}, [](const Found& each) { return each.layout.ranks(); }).layout.ranks(), 32);
  // The largest micro-batch, to the sample.
  const Architecture small = published_architecture("qwen2-0.5b");
  const Step large{.micro_batch = 64, .seq = 4096};
  const Found batch = nearest_that_fit(small, large, {}, gpu).front();
  Step more = batch.step;
  ++more.micro_batch;
  EXPECT_GT(largest(memory_of(small, more, {}, 80000000000)), gpu.left(1));
}

class RandomPlan {
 public:
  explicit RandomPlan(std::mt19937& random) : random_(random) {}

  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return values.begin()[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random_)];
  }
  template <Worded E>
  E any() {
    return static_cast<E>(std::uniform_int_distribution<std::size_t>(0, words(E{}).size() - 1)(random_));
  }
  Step step() {
    return {.micro_batch = one_of({1, 2, 3, 8}),
            .seq = one_of({64, 256, 1024, 4096}),
            .accumulate = one_of({1, 4, 8, 24}),
            .precision = any<Precision>(),
            .recompute = static_cast<Recompute>(one_of({0, 1, 2})),
            .method = any<Method>(),
            .lora_rank = one_of({1, 8, 64}),
            .lora_targets = any<Targets>(),
            .optimizer = any<Optimizer>(),
            .offload = any<Offload>()};
  }
  Layout layout() {
    return {.dp = one_of({1, 2, 3, 8, 64}),
            .tp = one_of({1, 1, 2, 4, 8, 3}),
            .sp = one_of({0, 1}) == 1,
            .pp = one_of({1, 1, 2, 4, 5}),
            .chunks = one_of({1, 1, 2, 3}),
            .ep = one_of({1, 1, 2, 8}),
            .cp = one_of({1, 1, 2, 4}),
            .zero = static_cast<int>(one_of({0, 1, 2, 3}))};
  }

 private:
  std::mt19937& random_;
};

TEST(PlannedMemory, ThousandRandomConfigurationsAreMonotone) {
  std::vector<Architecture> models;
  for (const Json& each : test::published_models())
    models.push_back(published_architecture(each.at("name").get<std::string>()));
  std::mt19937 random(37);
  RandomPlan plan(random);
  int planned = 0, refused = 0;
  while (planned < 1000) {
    const Architecture& model = models[std::uniform_int_distribution<std::size_t>(0, models.size() - 1)(random)];
    const Step step = plan.step();
    const Layout layout = plan.layout();
    if (const auto problem = problem_of(model, step, layout)) {
      ASSERT_THAT(*problem, testing::HasSubstr("use ")) << model.name;
      ++refused;
      continue;
    }
    ++planned;
    const auto total = [&](const Architecture& of, const Step& with) {
      return largest(memory_of(of, with, layout, 80000000000));
    };
    const double bytes = total(model, step);
    ASSERT_TRUE(std::isfinite(bytes) && bytes > 0) << model.name;
    for (const Traffic& each : traffic_of(model, step, layout, 8))
      ASSERT_TRUE(std::isfinite(each.bytes) && each.bytes >= 0);
    ASSERT_GE(bubble_of(step, layout), 0);
    Step batch = step, seq = step;
    ++batch.micro_batch, seq.seq += 2 * layout.cp * layout.tp;
    ASSERT_GE(total(model, batch), bytes) << model.name;
    ASSERT_GE(total(model, seq), bytes) << model.name;
    // A layer more where all are alike; else each layer twice, as the order of kinds matters.
    Architecture deeper = model;
    if (model.kinds.size() == 1) {
      deeper.order.push_back(0);
    } else {
      deeper.order.clear();
      for (const std::size_t kind : model.order) deeper.order.insert(deeper.order.end(), 2, kind);
    }
    ASSERT_GE(total(deeper, step), bytes) << model.name << " pp " << layout.pp << " chunks " << layout.chunks;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace assay::planning
