// Ranks that divide state (ZeRO) against ranks that each hold all of it.
#include "harness/comm/forwarding_communicator.h"
#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/thread_communicator.h"
#include "tests/unit/nn/small_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <set>

namespace assay::nn {
namespace {

using test::small_options;
using test::SmallStep;

// What the ranks of a world have after some steps.
struct Trained {
  std::vector<double> losses, norms;
  std::map<std::string, std::vector<std::byte>> arrays;  // whole, each byte from its owner
  std::map<std::string, std::size_t> covered;            // bytes
  std::set<std::pair<std::string, std::int64_t>> seen;
  std::vector<MemoryPlan> plans;
};

void add(Trained& trained, const std::vector<StatePart>& parts) {
  for (const StatePart& part : parts) {
    if (!trained.seen.emplace(part.name, part.first).second) continue;
    std::vector<std::byte>& whole = trained.arrays[part.name];
    std::size_t elements = 1;
    for (const std::int64_t each : part.shape) elements *= static_cast<std::size_t>(each);
    whole.resize(elements * size_of(part.dtype));
    std::memcpy(whole.data() + static_cast<std::size_t>(part.first) * size_of(part.dtype), part.data, part.bytes);
    trained.covered[part.name] += part.bytes;
  }
}

Trained train(const std::string& kind, StepOptions options, int ranks, int zero) {
  options.layout.zero = zero;
  Trained trained;
  std::mutex mutex;
  assay::test::run_ranks(ranks, [&](Communicator& comm) {
    SmallStep small(kind, options, &comm);
    std::vector<double> losses, norms;
    for (int i = 0; i < 3; ++i) {
      const StepResult result = small.step.step(1e-2);
      losses.push_back(result.loss);
      norms.push_back(result.gradient_norm);
    }
    const std::lock_guard lock(mutex);
    if (comm.rank() == 0) trained.losses = losses, trained.norms = norms;
    add(trained, small.step.gradients());
    add(trained, small.step.state());
    trained.plans.push_back(small.step.memory());
  });
  for (const auto& [name, whole] : trained.arrays) EXPECT_EQ(trained.covered[name], whole.size()) << name;
  return trained;
}

void expect_equal_bits(const Trained& want, const Trained& got, const std::string& what) {
  EXPECT_EQ(want.losses, got.losses) << what;
  EXPECT_EQ(want.norms, got.norms) << what;
  ASSERT_EQ(want.arrays.size(), got.arrays.size()) << what;
  for (const auto& [name, whole] : want.arrays) EXPECT_TRUE(whole == got.arrays.at(name)) << what << ": " << name;
}

class Zero : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Zero, testing::Values("gpt2", "llama", "bert", "basic", "bottleneck"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Zero, IsDataParallelToTheBit) {
  StepOptions options = small_options(GetParam());
  options.max_norm = 0.5;
  options.weight_decay = 0.1;
  for (const int ranks : {2, 4, 8}) {
    const Trained whole = train(GetParam(), options, ranks, 0);
    for (const int zero : {1, 2, 3})
      expect_equal_bits(whole, train(GetParam(), options, ranks, zero), fmt::format("zero {} on {}", zero, ranks));
  }
}

TEST_P(Zero, TakesTheMemoryOfItsStage) {
  const StepOptions options = small_options(GetParam());
  constexpr int ranks = 4;
  const MemoryPlan whole = train(GetParam(), options, ranks, 0).plans.front();
  for (const int zero : {1, 2, 3}) {
    const auto plans = train(GetParam(), options, ranks, zero).plans;
    for (const MemoryPlan& plan : plans) EXPECT_EQ(plan.total(), plans.front().total()) << "ranks differ";
    const MemoryPlan& plan = plans.front();
    constexpr std::uint64_t padding = 4096;
    EXPECT_LE(plan.optimizer, whole.optimizer / ranks + padding);
    EXPECT_LE(plan.gradients, whole.gradients / (zero > 1 ? ranks : 1) + padding) << zero;
    if (zero == 3) {
      EXPECT_LT(plan.weights, whole.weights);
    }
    EXPECT_EQ(plan.communication > 0, zero > 1);
  }
}

TEST_P(Zero, EvaluatesTheSame) {
  std::vector<double> losses;
  for (const int zero : {0, 3}) {
    StepOptions options = small_options(GetParam());
    options.layout.zero = zero;
    std::mutex mutex;
    assay::test::run_ranks(2, [&](Communicator& comm) {
      SmallStep small(GetParam(), options, &comm);
      small.step.step(1e-2);
      const double loss = small.step.evaluate().loss_sum, again = small.step.evaluate().loss_sum;
      EXPECT_EQ(loss, again);
      const std::lock_guard lock(mutex);
      if (comm.rank() == 0) losses.push_back(loss);
    });
  }
  EXPECT_EQ(losses.at(0), losses.at(1));
}

// A non-finite weight is found by the rank that holds it, and its consequences by the others.
TEST(ZeroFailures, AreReportedByEveryRank) {
  for (const int zero : {1, 2, 3}) {
    StepOptions options = small_options("gpt2");
    options.layout.zero = zero;
    assay::test::run_ranks(2, [&](Communicator& comm) {
      SmallStep small("gpt2", options, &comm);
      small.step.step(1e-2);
      for (const StatePart& part : small.step.state())
        if (part.name == "weights/block.1.mlp.in.weight" && (comm.rank() == 1 || part.whole()))
          static_cast<double*>(part.data)[0] = INFINITY;
      EXPECT_TRUE(small.step.step(1e-2).skipped);
      const std::string found = small.step.first_non_finite();
      EXPECT_TRUE(found == "weights/block.1.mlp.in.weight" || found == "block.1.mlp.in.out") << found;
    });
  }
}

// Gradients of several micro-batches are added up in another order.
TEST(ZeroOptions, AccumulationIsEqualUpToRounding) {
  for (const std::string kind : {"gpt2", "llama", "bert"}) {
    StepOptions options = small_options(kind);
    options.max_norm = 0.5;
    options.accumulate = 3;
    const Trained whole = train(kind, options, 2, 0);
    expect_equal_bits(whole, train(kind, options, 2, 1), kind);
    for (const int zero : {2, 3}) {
      const Trained divided = train(kind, options, 2, zero);
      for (std::size_t i = 0; i < whole.losses.size(); ++i)
        EXPECT_NEAR(divided.losses[i], whole.losses[i], 1e-9) << kind;
    }
  }
}

TEST(ZeroOptions, OtherOptimizersAndPrecisions) {
  StepOptions options = small_options("llama");
  options.max_norm = 0.5;
  options.optimizer = ops::OptimizerKind::sgd;
  options.checkpointing = Checkpointing::full;
  const Trained sgd = train("llama", options, 2, 0);
  for (const int zero : {1, 2, 3}) expect_equal_bits(sgd, train("llama", options, 2, zero), "sgd");
  for (const std::string kind : {"gpt2", "llama", "basic"}) {
    StepOptions rounded = small_options(kind, "bf16");
    rounded.max_norm = 0.5;
    const Trained whole = train(kind, rounded, 2, 0);
    for (const int zero : {1, 2, 3}) expect_equal_bits(whole, train(kind, rounded, 2, zero), kind);
  }
}

// Counts what a rank moves, as papers do.
class Counting final : public ForwardingCommunicator {
 public:
  Counting(Communicator& inner, bool sums_gradients) : ForwardingCommunicator(inner), all_(sums_gradients) {}
  void all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op, Stream& s) override {
    if (all_ && dtype == DType::f64 && count > 1) reduced += 2 * count;
    inner_.all_reduce(send, receive, count, dtype, op, s);
  }
  void reduce_scatter(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op,
                      Stream& s) override {
    reduced += count * static_cast<std::size_t>(size());
    inner_.reduce_scatter(send, receive, count, dtype, op, s);
  }
  void all_gather(const void* send, void* receive, std::size_t count, DType dtype, Stream& s) override {
    gathered += count * static_cast<std::size_t>(size());
    inner_.all_gather(send, receive, count, dtype, s);
  }
  std::size_t reduced = 0, gathered = 0;  // elements

 private:
  bool all_;
};

// Rajbhandari et al. 2019, section 7: 2 P elements, but 3 P with stage 3, which gathers weights for both passes. Here
// embedding and head, which one pass uses, are small.
TEST(ZeroOptions, MovesWhatTheFormulasSay) {
  for (const std::string kind : {"deep_gpt2", "deep_llama"}) {
    StepOptions options = small_options(kind);
    double parameters = 0;
    for (const ParameterSpec& spec : test::model(kind)->parameters()) parameters += static_cast<double>(spec.count());
    for (const int zero : {0, 1, 2, 3}) {
      options.layout.zero = zero;
      assay::test::run_ranks(2, [&](Communicator& comm) {
        Counting counting(comm, zero == 0);
        SmallStep small(kind, options, &counting);
        small.step.step(1e-2);
        counting.reduced = counting.gathered = 0;
        small.step.step(1e-2);
        const auto [data, gather] = small.step.communication_bytes();
        EXPECT_EQ(data, counting.reduced * sizeof(double)) << kind << ", zero " << zero;
        EXPECT_EQ(gather, counting.gathered * sizeof(double)) << kind << ", zero " << zero;
        const auto near = [&](std::size_t got, double want) {
          EXPECT_NEAR(static_cast<double>(got) / parameters, want, 0.05) << kind << ", zero " << zero;
        };
        near(counting.reduced, zero == 0 ? 2 : 1);
        near(counting.gathered, zero == 0 ? 0 : zero < 3 ? 1 : 2);
      });
    }
  }
}

// One rank has nobody to divide with.
TEST(ZeroOptions, OneRankHoldsEverything) {
  StepOptions options = small_options("gpt2");
  expect_equal_bits(train("gpt2", options, 1, 0), train("gpt2", options, 1, 3), "one rank");
}

TEST(ZeroOptions, EightBitProductsAreRefused) {
  StepOptions options = small_options("wide_gpt2", "fp8");
  options.layout.zero = 1;
  EXPECT_THAT(assay::test::refusal<UsageError>([&] { SmallStep small("wide_gpt2", options); }),
              testing::HasSubstr("use zero=0 or precision=bf16"));
}

}  // namespace
}  // namespace assay::nn
