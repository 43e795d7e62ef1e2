// Whole steps on the reference backend: equivalences between settings, saved state, non-finite values, memory.
#include "harness/comm/forwarding_communicator.h"
#include "harness/core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/thread_communicator.h"
#include "tests/unit/nn/small_models.h"
#include "workloads/nn/layers/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace assay::nn {
namespace {

using test::losses;
using test::small_options;
using test::SmallStep;

std::map<std::string, std::vector<double>> values(const std::vector<StatePart>& parts) {
  std::map<std::string, std::vector<double>> all;
  for (const StatePart& part : parts)
    if (part.dtype == DType::f64) {
      const auto* data = static_cast<const double*>(part.data);
      all[part.name].assign(data, data + part.bytes / sizeof(double));
    }
  return all;
}

class Models : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Models, testing::Values("gpt2", "llama", "bert", "basic", "bottleneck"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Models, OverfitABatch) {
  SmallStep small(GetParam(), small_options(GetParam()));
  const auto list = losses(small, 40);
  EXPECT_NEAR(list.front(), std::log(static_cast<double>(test::classes_of(GetParam()))), 1.5);
  EXPECT_LT(list.back(), 0.5 * list.front());
}

TEST_P(Models, CheckpointingDoesNotChangeABit) {
  StepOptions options = small_options(GetParam());
  SmallStep none(GetParam(), options);
  options.checkpointing = Checkpointing::full;
  SmallStep full(GetParam(), options);
  EXPECT_EQ(losses(none, 4), losses(full, 4));
  EXPECT_EQ(values(none.step.state()), values(full.step.state()));
}

TEST(Selective, DropsWhatTheFormulaSaysAndChangesNoBit) {
  for (const std::string kind : {"deep_gpt2", "deep_llama", "bert", "qwen2"})
    for (const std::int64_t accumulate : {1, 2}) {
      StepOptions options = small_options(kind);
      options.accumulate = accumulate;
      SmallStep none(kind, options);
      options.checkpointing = Checkpointing::selective;
      SmallStep selective(kind, options);
      EXPECT_EQ(losses(none, 4), losses(selective, 4)) << kind;
      EXPECT_EQ(values(none.step.state()), values(selective.step.state())) << kind;
    }
  // Per layer and row the two outputs of norms (2 h) and that of the activation (f), but for the layer at the peak.
  for (const std::string kind : {"deep_gpt2", "deep_llama"}) {
    StepOptions options = small_options(kind);
    options.batch = {.samples = 32, .seq = 8};
    const std::uint64_t kept = SmallStep(kind, options).step.memory().activations;
    options.checkpointing = Checkpointing::selective;
    const std::uint64_t left = SmallStep(kind, options).step.memory().activations;
    constexpr double rows = 32 * 8, width = 32, hidden = 48, layers = 8;
    const double each = rows * (2 * width + hidden) * sizeof(double);
    EXPECT_LE(static_cast<double>(kept - left), layers * each) << kind;
    EXPECT_GE(static_cast<double>(kept - left), (layers - 1.5) * each) << kind;
    options.checkpointing = Checkpointing::full;
    EXPECT_LT(SmallStep(kind, options).step.memory().activations, left) << kind;
  }
}

TEST_P(Models, RunsAreBitwiseEqual) {
  SmallStep a(GetParam(), small_options(GetParam())), b(GetParam(), small_options(GetParam()));
  EXPECT_EQ(losses(a, 3), losses(b, 3));
}

// Batch norm depends on the micro-batch, so this holds only for tokens.
TEST(Accumulation, TwoMicroBatchesEqualOneOfTwiceTheSize) {
  for (const char* kind : {"gpt2", "llama", "bert"}) {
    StepOptions options = small_options(kind);
    options.accumulate = 2;
    SmallStep two(kind, options);
    options.accumulate = 1;
    options.batch.samples *= 2;
    SmallStep one(kind, options);
    const Inputs whole = one.step.inputs(0);
    const auto join = [&](auto member) {
      const auto first = two.step.inputs(0).*member, second = two.step.inputs(1).*member;
      std::copy(first.begin(), first.end(), (whole.*member).begin());
      std::copy(second.begin(), second.end(), (whole.*member).begin() + static_cast<std::ptrdiff_t>(first.size()));
    };
    join(&Inputs::ids);
    join(&Inputs::type_ids);
    join(&Inputs::lengths);
    join(&Inputs::targets);
    for (int i = 0; i < 3; ++i) {
      const StepResult a = two.step.step(1e-2), b = one.step.step(1e-2);
      EXPECT_NEAR(a.loss, b.loss, 1e-7) << kind;  // the scale of gradients is an f32
      EXPECT_EQ(a.valid, b.valid);
      EXPECT_EQ(a.correct, b.correct);
    }
  }
}

// The head's gradient is a sum over blocks of rows; the first block overwrites it.
TEST(Logits, InBlocksGiveTheSameStep) {
  for (const char* kind : {"gpt2", "llama", "bert"}) {
    StepOptions options = small_options(kind);
    options.batch.samples = 16;  // times 5 tokens: five blocks of 16 rows
    SmallStep whole(kind, options);
    options.logits_bytes = 256;
    SmallStep blocks(kind, options);
    EXPECT_LT(blocks.step.memory().total(), whole.step.memory().total());
    for (int i = 0; i < 3; ++i) {
      const StepResult a = whole.step.step(1e-2), b = blocks.step.step(1e-2);
      EXPECT_NEAR(a.loss, b.loss, 1e-12) << kind << " step " << i;
      EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-6) << kind << " step " << i;
      EXPECT_EQ(a.valid, b.valid);
      EXPECT_EQ(a.correct, b.correct);
    }
  }
}

TEST_P(Models, RanksMatchOneRankThatAccumulates) {
  const std::string kind = GetParam();
  StepOptions options = small_options(kind);
  options.bucket_bytes = 512;
  options.accumulate = 4;
  options.max_norm = 0.5;
  SmallStep alone(kind, options);
  const auto want = losses(alone, 3);
  const auto want_state = values(alone.step.state());
  for (const int ranks : {2, 4}) {
    options.accumulate = 4 / ranks;
    assay::test::run_ranks(ranks, [&](Communicator& comm) {
      SmallStep small(kind, options, &comm);
      const auto got = losses(small, 3);
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << ranks << " ranks, step " << i;
      for (const auto& [name, list] : values(small.step.state())) {
        const auto& expected = want_state.at(name);
        for (std::size_t i = 0; i < list.size(); ++i)
          ASSERT_NEAR(list[i], expected[i], 2e-4 * (1 + std::abs(expected[i]))) << name << " of " << ranks;
      }
    });
  }
}

// Wraps a rank's communicator: its library registers memory.
class Registering final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  void all_reduce(const void* send, void* receive, std::size_t count, DType dtype, ReduceOp op, Stream& s) override {
    if (inside(receive)) reduced += count;
    inner_.all_reduce(send, receive, count, dtype, op, s);
  }
  Buffer allocate_registered(std::size_t bytes, Registration how) override {
    EXPECT_EQ(how, Registration::local);
    memory_.resize(bytes / sizeof(double), 1);
    return Buffer(memory_.data(), bytes, [](void*, std::size_t) {});
  }

  std::size_t reduced = 0;  // elements in registered memory

 private:
  bool inside(const void* at) const { return at >= memory_.data() && at < memory_.data() + memory_.size(); }

  std::vector<double> memory_;
};

TEST_P(Models, GradientsOfSeveralRanksAreInRegisteredMemory) {
  const StepOptions options = small_options(GetParam());
  std::size_t parameters = 0;
  const auto alone = make_self_communicator();
  Registering one(*alone);
  SmallStep single(GetParam(), options, &one);
  EXPECT_FALSE(single.step.gradients_are_registered()) << "nothing is added up";
  for (const StatePart& part : single.step.gradients()) parameters += part.bytes / sizeof(double);

  std::vector<double> plain, registered;
  assay::test::run_ranks(2, [&](Communicator& comm) {
    SmallStep small(GetParam(), options, &comm);
    EXPECT_FALSE(small.step.gradients_are_registered()) << "threads register no memory";
    const auto list = losses(small, 3);
    if (comm.rank() == 0) plain = list;
  });
  assay::test::run_ranks(2, [&](Communicator& comm) {
    Registering registering(comm);
    SmallStep small(GetParam(), options, &registering);
    EXPECT_TRUE(small.step.gradients_are_registered());
    const auto list = losses(small, 3);
    EXPECT_GE(registering.reduced, 3 * parameters);
    if (comm.rank() == 0) registered = list;
  });
  EXPECT_EQ(plain, registered);
}

TEST_P(Models, EvaluationChangesNothing) {
  SmallStep small(GetParam(), small_options(GetParam()));
  small.step.step(1e-2);
  const auto before = values(small.step.state());
  const StepResult a = small.step.evaluate(), b = small.step.evaluate();
  EXPECT_EQ(a.loss_sum, b.loss_sum);
  EXPECT_GT(a.valid, 0);
  EXPECT_EQ(before, values(small.step.state()));
}

TEST(Evaluation, OfTokensGivesTheLossOfTheNextStep) {
  SmallStep small("llama", small_options("llama"));
  small.step.step(1e-2);
  const double evaluated = small.step.evaluate().loss;
  EXPECT_DOUBLE_EQ(evaluated, small.step.step(1e-2).loss);
}

TEST_P(Models, RestoredStateContinuesBitwiseEqual) {
  SmallStep small(GetParam(), small_options(GetParam()));
  losses(small, 2);
  const auto saved = test::bytes(small.step);
  const auto want = losses(small, 2);
  SmallStep other(GetParam(), small_options(GetParam()));
  test::restore(other.step, saved);
  EXPECT_EQ(want, losses(other, 2));
}

TEST(NonFinite, IsReportedAndNothingIsWritten) {
  SmallStep small("gpt2", small_options("gpt2"));
  EXPECT_EQ(small.step.first_non_finite(), "");
  for (const StatePart& part : small.step.state())
    if (part.name == "weights/block.1.mlp.in.weight")
      std::fill_n(static_cast<double*>(part.data), part.bytes / sizeof(double), 1.7e308);
  const auto before = values(small.step.state());
  const StepResult result = small.step.step(1e-2);
  EXPECT_TRUE(result.skipped);
  EXPECT_EQ(before, values(small.step.state()));
  EXPECT_EQ(small.step.first_non_finite(), "block.1.mlp.in.out");
}

TEST(NonFinite, WeightsAndImagesAreCheckedFirst) {
  SmallStep small("basic", small_options("basic"));
  small.step.inputs(0).images[7] = std::nanf("");
  const auto before = values(small.step.state());
  EXPECT_TRUE(small.step.step(1e-2).skipped);
  EXPECT_EQ(small.step.first_non_finite(), "inputs/images");
  EXPECT_EQ(values(small.step.state()).at("weights/classifier.weight"), before.at("weights/classifier.weight"));
  for (const StatePart& part : small.step.state())
    if (part.name == "weights/classifier.weight") static_cast<double*>(part.data)[0] = INFINITY;
  EXPECT_EQ(small.step.first_non_finite(), "weights/classifier.weight");
}

TEST(LossScaling, OverflowsAreSkippedAndTheScaleFalls) {
  StepOptions options = small_options("llama", "f32");
  options.precision.loss_scaling = true;  // the logic of fp16, in a type that the reference backend supports
  SmallStep small("llama", options);
  StepOptions plain_options = small_options("llama", "f32");
  SmallStep plain("llama", plain_options);
  EXPECT_NEAR(small.step.step(1e-2).loss, plain.step.step(1e-2).loss, 1e-6);
  EXPECT_NEAR(small.step.step(1e-2).loss, plain.step.step(1e-2).loss, 1e-4);
  EXPECT_EQ(small.step.loss_scale(), 65536.0f);
  // Gradients of about 1e4 overflow under a scale of 3e38; the loss does not.
  const auto poke = [&](const std::string& name, float factor, float value) {
    for (const StatePart& part : small.step.state())
      if (part.name == name)
        for (std::size_t i = 0; i < part.bytes / sizeof(float); ++i) {
          float& element = static_cast<float*>(part.data)[i];
          element = element * factor + value;
        }
  };
  poke("weights/norm.weight", 1e4f, 0);
  poke("loss_scale", 0, 3e38f);
  const StepResult result = small.step.step(1e-2);
  EXPECT_TRUE(result.skipped);
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_EQ(small.step.loss_scale(), 1.5e38f);
  poke("weights/norm.weight", 1e-4f, 0);
  poke("loss_scale", 0, 1024.0f);
  EXPECT_FALSE(small.step.step(1e-2).skipped);
}

TEST(Targets, NoneValidIsAnError) {
  SmallStep small("gpt2", small_options("gpt2"));
  for (std::int32_t& target : small.step.inputs(0).targets) target = -100;
  EXPECT_THROW(small.step.step(1e-2), Error);
}

TEST(Memory, ThatDoesNotFitIsReportedByTerm) {
  StepOptions options = small_options("gpt2");
  options.batch.samples = std::int64_t{1} << 32;
  const auto device = make_device(DeviceKind::cpu, 0);
  const auto comm = make_self_communicator();
  TrainingStep step(*test::model("gpt2"), options, *device, ops::make_reference_backend(), *comm);
  EXPECT_THAT(assay::test::refusal<Error>([&] { step.allocate(); }), testing::HasSubstr("activations"));
}

TEST(Memory, CheckpointingTakesLess) {
  StepOptions options = small_options("gpt2");
  options.batch.samples = 64;
  SmallStep none("gpt2", options);
  options.checkpointing = Checkpointing::full;
  SmallStep full("gpt2", options);
  EXPECT_LT(full.step.memory().activations, none.step.memory().activations);
  EXPECT_EQ(full.step.memory().gradients, none.step.memory().gradients);
}

// GPT-2's vocabulary, and one for which 4 GiB are 2^31 elements.
TEST(Shapes, BlocksOfLogitsStayWithinTheElementsThatProductsSupport) {
  constexpr std::int64_t room = std::int64_t{4} << 30;
  for (const std::int64_t columns : {50304, 32768})
    for (const std::int64_t rows : {42729, 65536, 2 * 42729}) {
      const std::int64_t block = rows_per_block(rows, columns, DType::bf16, room);
      EXPECT_LT(block * columns, std::int64_t{1} << 31) << rows;
      EXPECT_GT(block * columns, std::int64_t{1} << 29) << rows;
    }
}

TEST(Shapes, SequencesBeyondThePositionsAreRejected) {
  StepOptions options = small_options("gpt2");
  options.batch.seq = 9;
  EXPECT_THROW(SmallStep("gpt2", options), UsageError);
}

}  // namespace
}  // namespace assay::nn
