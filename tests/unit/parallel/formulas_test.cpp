// Published formulas of memory against the figures that their sources print.
#include "workloads/parallel/formulas.h"

#include <gtest/gtest.h>

namespace assay::parallel {
namespace {

// Korthikanti et al. 2022, table 3: the models that table 2's formulas are evaluated for, with t = 8, s = 2048 and a
// vocabulary of 51200.
TransformerShape published(std::int64_t heads, std::int64_t width, std::int64_t layers, std::int64_t batch = 1) {
  TransformerShape shape{.s = 2048, .b = batch, .h = width, .a = heads, .k = heads};
  shape.d = width / heads;
  shape.f = 4 * width;
  shape.layers = layers;
  shape.v = 51200;
  return shape;
}
const TransformerShape b22 = published(64, 6144, 48, 4), b175 = published(96, 12288, 96),
                       b530 = published(128, 20480, 105), t1 = published(160, 25600, 128);

double per_sbh(const TransformerShape& shape, Recompute recompute, std::int64_t t, bool sequence) {
  const double sbh = static_cast<double>(shape.s * shape.b * shape.h);
  return korthikanti_layer(shape, recompute, t, sequence) / sbh;
}

TEST(Korthikanti, Table2OfItsModels) {
  // 5as/h is 80 for GPT-3 and 64 for MT-NLG (section 5).
  EXPECT_DOUBLE_EQ(per_sbh(b175, Recompute::none, 1, false), 34 + 80);
  EXPECT_DOUBLE_EQ(per_sbh(b530, Recompute::none, 1, false), 34 + 64);
  EXPECT_DOUBLE_EQ(per_sbh(t1, Recompute::none, 1, false), 34 + 64);
  EXPECT_DOUBLE_EQ(per_sbh(b22, Recompute::none, 8, false), 10 + 24 / 8.0 + (5 * 64 * 2048 / 6144.0) / 8);
  EXPECT_DOUBLE_EQ(per_sbh(b175, Recompute::none, 8, true), (34 + 80) / 8.0);
  EXPECT_DOUBLE_EQ(per_sbh(b175, Recompute::selective, 8, false), 10 + 24 / 8.0);
  EXPECT_DOUBLE_EQ(per_sbh(b530, Recompute::selective, 8, true), 34 / 8.0);
  EXPECT_DOUBLE_EQ(per_sbh(t1, Recompute::full, 8, false), 2);
}

// Section 5: selective recomputation saves 70 % of the activations of GPT-3 and 65 % of MT-NLG's. Section 6.1: both
// techniques together need under 20 % of what tensor parallelism needs, give or take a point.
TEST(Korthikanti, SavesWhatThePaperSays) {
  const auto saved = [](const TransformerShape& shape) {
    return 1 - per_sbh(shape, Recompute::selective, 1, false) / per_sbh(shape, Recompute::none, 1, false);
  };
  EXPECT_NEAR(saved(b175), 0.70, 0.005);
  EXPECT_NEAR(saved(b530), 0.65, 0.005);
  for (const TransformerShape& shape : {b22, b175, b530, t1}) {
    const double both = per_sbh(shape, Recompute::selective, 8, true) / per_sbh(shape, Recompute::none, 8, false);
    EXPECT_NEAR(both, 0.185, 0.03) << shape.h;
  }
}

TEST(Korthikanti, CountsWhatIsOutsideOfLayersOnce) {
  const double sbh = 2048.0 * 4 * 6144;
  EXPECT_DOUBLE_EQ(korthikanti_outside(b22, 8), sbh / 8 * (1 + 4 * (1 + 51200 / 6144.0)));
  EXPECT_DOUBLE_EQ(korthikanti_activations(b22, Recompute::full), 48 * 2 * sbh + korthikanti_outside(b22, 1));
}

// The models' names say how many parameters they have.
TEST(Megatron, CountsParameters) {
  EXPECT_NEAR(megatron_parameters(b22) / 1e9, 22, 0.5);
  EXPECT_NEAR(megatron_parameters(b175) / 1e9, 175, 0.5);
  EXPECT_NEAR(megatron_parameters(b530) / 1e9, 530, 1);
  EXPECT_NEAR(megatron_parameters(t1) / 1e12, 1, 0.01);
}

// What Megatron-LM itself printed for GPT-2 XL, one sequence of 1024 tokens, on one GPU: "Number of parameters in most
// loaded shard in billions: 1.5554", "Activation memory footprint per transformer layer (precise, without SP): 53.1
// MB", "weight and optimizer=26699.47 MB" (a public log of October 2025). Its MB are 2^20 bytes.
TEST(Megatron, PrintsTheSameForGpt2Xl) {
  TransformerShape xl{.s = 1024, .b = 1, .h = 1600, .a = 25, .k = 25, .d = 64, .f = 6400};
  xl.layers = 48;
  xl.v = 50304;
  constexpr double mb = 1 << 20;
  EXPECT_NEAR(megatron_parameters(xl) / 1e9, 1.5554, 0.00005);
  EXPECT_NEAR(megatron_weights_and_optimizer(xl, 1, false) / mb, 26699.47, 0.1);
  EXPECT_NEAR(megatron_layer(xl) / mb, 53.1, 0.05);
  EXPECT_DOUBLE_EQ(megatron_weights_and_optimizer(xl, 4, true), megatron_parameters(xl) * 9);
  const double sbh = 1024.0 * 1600;
  EXPECT_DOUBLE_EQ(megatron_activations(xl),
                   48 * megatron_layer(xl) + 8.0 * 1024 + sbh + 4 * sbh * (1 + 50304 / 1600.0));
}

// Llama-3-8B: 8,030,261,248 parameters.
TEST(Megatron, CountsGatedMlpsAndGroupedHeads) {
  TransformerShape llama{.s = 1, .b = 1, .h = 4096, .a = 32, .k = 8, .d = 128, .f = 14336};
  llama.layers = 32;
  llama.v = 128256;
  llama.gated = llama.rms = true;
  llama.tied = false;
  EXPECT_DOUBLE_EQ(megatron_parameters(llama), 8030261248.0);
}

// Figure 1: 7.5 B parameters on 64 ranks.
TEST(Zero, PrintsFigure1) {
  EXPECT_NEAR(zero_bytes(7.5e9, 0, 64) / 1e9, 120, 0.05);
  EXPECT_NEAR(zero_bytes(7.5e9, 1, 64) / 1e9, 31.4, 0.05);
  EXPECT_NEAR(zero_bytes(7.5e9, 2, 64) / 1e9, 16.6, 0.05);
  EXPECT_NEAR(zero_bytes(7.5e9, 3, 64) / 1e9, 1.9, 0.05);
}

}  // namespace
}  // namespace assay::parallel
