// Training steps on a GPU or its emulation: graph replay, prefetched inputs, and agreement with the CPU.
#include "harness/core/error.h"
#include "tests/support/devices.h"
#include "tests/unit/nn/small_models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace assay::nn {
namespace {

using test::small_options;
using test::SmallStep;

// A GPU without graphs or, with `late`, one that fails each capture at its end.
class WithoutGraphs final : public Device {
 public:
  explicit WithoutGraphs(Device& device, bool late = false) : device_(device), late_(late) {}
  const DeviceInfo& info() const override { return device_.info(); }
  std::unique_ptr<Stream> make_stream() override { return device_.make_stream(); }
  std::unique_ptr<Event> make_event() override { return device_.make_event(); }
  Buffer allocate(std::size_t bytes, Memory memory) override { return device_.allocate(bytes, memory); }
  void copy(void* to, const void* from, std::size_t bytes, Stream& stream) override {
    device_.copy(to, from, bytes, stream);
  }
  void zero(void* at, std::size_t bytes, Stream& stream) override { device_.zero(at, bytes, stream); }
  std::unique_ptr<Graph> capture(Stream& stream, const std::function<void()>& body, std::string& why_not) override {
    const auto failing = [&] {
      body();
      throw Error("refused by a test");
    };
    if (late_) return device_.capture(stream, failing, why_not);
    why_not = "refused by a test";
    return nullptr;
  }
  std::string_view timer() const override { return device_.timer(); }
  double timer_cost() const override { return device_.timer_cost(); }
  double shortest_sample() const override { return device_.shortest_sample(); }
  void evict(Stream& stream, std::span<const MemoryRange> ranges) override { device_.evict(stream, ranges); }

 private:
  Device& device_;
  bool late_;
};

// A step on the GPU with its first batches.
struct GpuStep {
  GpuStep(const std::string& kind, const StepOptions& options, Device& device, Device& ops_device)
      : comm(make_self_communicator()), step(*test::model(kind), options, device, ops::backend_for(ops_device), *comm) {
    step.allocate();
    step.initialise(1);
    for (std::int64_t m = 0; m < options.accumulate; ++m)
      test::fill(step.inputs(m), test::classes_of(kind), static_cast<std::uint64_t>(m));
  }
  std::unique_ptr<Communicator> comm;
  TrainingStep step;
};

class GpuModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = assay::test::device_of(DeviceKind::cuda, why_not);
    if (!device_) GTEST_SKIP() << why_not;
  }
  static StepOptions options(std::string_view precision = "f32") {
    StepOptions made = small_options(GetParam(), precision);
    made.accumulate = 2;
    made.max_norm = 0.5;
    return made;
  }
  std::vector<std::vector<std::byte>> bytes(TrainingStep& step) {
    const auto stream = device_->make_stream();
    std::vector<std::vector<std::byte>> all;
    for (const StatePart& part : step.state()) {
      all.emplace_back(part.bytes);
      device_->copy(all.back().data(), part.data, part.bytes, *stream);
      stream->synchronize();
    }
    return all;
  }
  std::shared_ptr<Device> device_;
};
INSTANTIATE_TEST_SUITE_P(All, GpuModels, testing::Values("gpt2", "llama", "bert", "basic", "bottleneck"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(GpuModels, MatchTheReference) {
  for (const char* precision : {"f32", "bf16"}) {
    SmallStep oracle(GetParam(), options(precision));
    GpuStep gpu(GetParam(), options(precision), *device_, *device_);
    const double tolerance = std::string_view(precision) == "f32" ? 2e-4 : 6e-2;
    for (int i = 0; i < 4; ++i) {
      const StepResult want = oracle.step.step(1e-2), got = gpu.step.step(1e-2);
      EXPECT_NEAR(got.loss, want.loss, tolerance * want.loss) << precision << " step " << i;
      EXPECT_EQ(got.valid, want.valid);
      EXPECT_NEAR(got.gradient_norm, want.gradient_norm, 10 * tolerance * want.gradient_norm) << precision;
    }
    EXPECT_EQ(gpu.step.graph(), "captured");
  }
}

TEST_P(GpuModels, MakeNoOpOfAnEvaluationThatNeverRuns) {
  StepOptions made = options();
  GpuStep evaluating(GetParam(), made, *device_, *device_);
  made.evaluation = false;
  GpuStep other(GetParam(), made, *device_, *device_);
  EXPECT_THROW(other.step.evaluate(), Error);
  EXPECT_EQ(other.step.step(1e-2).loss, evaluating.step.step(1e-2).loss);
  if (!device_->info().emulated) return;
  const bool images = std::string_view(GetParam()).starts_with("b") && std::string_view(GetParam()) != "bert";
  EXPECT_EQ(evaluating.step.choices().find("in evaluation") != std::string::npos, images);
  EXPECT_EQ(other.step.choices().find("in evaluation"), std::string::npos);
}

TEST_P(GpuModels, ReplayIsBitwiseEqual) {
  WithoutGraphs refusing(*device_), failing(*device_, true);
  GpuStep captured(GetParam(), options(), *device_, *device_), eager(GetParam(), options(), refusing, *device_),
      failed(GetParam(), options(), failing, *device_);
  for (int i = 0; i < 4; ++i) {
    const StepResult a = captured.step.step(1e-2), b = eager.step.step(1e-2);
    EXPECT_EQ(a.loss, b.loss) << "step " << i;
    EXPECT_EQ(failed.step.step(1e-2).loss, b.loss) << "step " << i;
    EXPECT_GT(a.forward, 0);
    EXPECT_GT(a.backward, 0);
    EXPECT_GT(a.optimizer, 0);
    EXPECT_EQ(captured.step.evaluate().loss_sum, eager.step.evaluate().loss_sum);
  }
  EXPECT_EQ(bytes(captured.step), bytes(eager.step));
  EXPECT_EQ(bytes(failed.step), bytes(eager.step)) << "the work of a failed capture must not run";
  EXPECT_EQ(captured.step.graph(), "captured");
  EXPECT_EQ(eager.step.graph(), "eager: refused by a test");
  EXPECT_EQ(failed.step.graph(), "eager: refused by a test");
}

// If logits exceed a fraction of the GPU's memory they are computed in blocks, whose gradients sum to the same.
class GpuLogits : public GpuModels {};
INSTANTIATE_TEST_SUITE_P(All, GpuLogits, testing::Values("gpt2", "llama", "bert"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(GpuLogits, InBlocksAreTheSameStep) {
  StepOptions in_blocks = options();
  in_blocks.batch.samples = 16;
  GpuStep whole(GetParam(), in_blocks, *device_, *device_);
  in_blocks.logits_bytes = 256;
  GpuStep blocks(GetParam(), in_blocks, *device_, *device_);
  for (int i = 0; i < 3; ++i) {
    const StepResult a = whole.step.step(1e-2), b = blocks.step.step(1e-2);
    EXPECT_NEAR(a.loss, b.loss, 1e-5) << "step " << i;
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-4 * a.gradient_norm) << "step " << i;
    EXPECT_EQ(a.correct, b.correct);
  }
  EXPECT_EQ(blocks.step.graph(), "captured");
}

class Fp8Gpu : public GpuModels {};
INSTANTIATE_TEST_SUITE_P(All, Fp8Gpu, testing::Values("wide_gpt2", "wide_llama", "wide_bert"),
                         [](const auto& param) { return std::string(param.param); });

TEST_P(Fp8Gpu, MatchesTheReference) {
  SmallStep oracle(GetParam(), options("fp8"));
  GpuStep gpu(GetParam(), options("fp8"), *device_, *device_);
  for (int i = 0; i < 3; ++i) {
    const StepResult want = oracle.step.step(1e-3), got = gpu.step.step(1e-3);
    EXPECT_NEAR(got.loss, want.loss, 2e-2 * want.loss) << "step " << i;
    // Magnitudes that differ in bf16's last bit give other scales and other roundings of every element. The first step
    // of AdamW uses only the gradients' signs, which amplifies small differences.
    if (i == 0) {
      EXPECT_NEAR(got.gradient_norm, want.gradient_norm, 0.15 * want.gradient_norm);
    }
  }
  EXPECT_EQ(gpu.step.graph(), "captured");
}

// The operands of each product have independent errors of 2.6 % (e4m3) and 5.2 % (e5m2). After 8 such layers, the
// logits of these models are off by about a tenth of their size, and losses by a few percent of the initial one. At a
// rate of 1e-2 even bf16 and f32 diverge by a tenth, since steps amplify differences.
TEST_P(Fp8Gpu, TrainsLikeBf16) {
  GpuStep fp8(GetParam(), options("fp8"), *device_, *device_), bf16(GetParam(), options("bf16"), *device_, *device_);
  double first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    const double got = fp8.step.step(1e-3).loss, want = bf16.step.step(1e-3).loss;
    if (i == 0) first = want;
    last = want;
    EXPECT_NEAR(got, want, 6e-2 * first) << "step " << i;
  }
  EXPECT_LT(last, 0.7 * first);
}

TEST_P(Fp8Gpu, ReplayIsBitwiseEqual) {
  WithoutGraphs refusing(*device_);
  StepOptions made = options("fp8");
  for (const Checkpointing checkpointing : {Checkpointing::none, Checkpointing::full}) {
    GpuStep eager(GetParam(), made, refusing, *device_);
    made.checkpointing = checkpointing;
    GpuStep captured(GetParam(), made, *device_, *device_);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(captured.step.step(1e-2).loss, eager.step.step(1e-2).loss) << "step " << i;
      EXPECT_EQ(captured.step.evaluate().loss_sum, eager.step.evaluate().loss_sum);
    }
    EXPECT_EQ(bytes(captured.step), bytes(eager.step));
    EXPECT_EQ(captured.step.graph(), "captured");
  }
}

TEST_P(Fp8Gpu, RestoredStateContinuesBitwiseEqual) {
  GpuStep straight(GetParam(), options("fp8"), *device_, *device_),
      other(GetParam(), options("fp8"), *device_, *device_);
  for (int i = 0; i < 2; ++i) straight.step.step(1e-2);
  other.step.step(1e-2);
  const auto stream = device_->make_stream();
  const auto from = straight.step.state(), to = other.step.state();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) device_->copy(to[i].data, from[i].data, from[i].bytes, *stream);
  stream->synchronize();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(other.step.step(1e-2).loss, straight.step.step(1e-2).loss) << i;
  EXPECT_EQ(bytes(other.step), bytes(straight.step));
}

TEST_P(GpuModels, PrefetchedInputsAreTheNextStepsBatch) {
  GpuStep plain(GetParam(), options(), *device_, *device_), prefetching(GetParam(), options(), *device_, *device_);
  const auto fill = [&](TrainingStep& step, int batch) {
    for (std::int64_t m = 0; m < 2; ++m)
      test::fill(step.inputs(m), test::classes_of(GetParam()), static_cast<std::uint64_t>(10 * batch + m));
  };
  fill(prefetching.step, 0);
  for (int i = 0; i < 4; ++i) {
    fill(plain.step, i);
    const double want = plain.step.step(1e-2).loss;
    const double got = prefetching.step
                           .step(1e-2, {},
                                 [&] {
                                   fill(prefetching.step, i + 1);
                                   prefetching.step.prefetch_inputs();
                                 })
                           .loss;
    EXPECT_EQ(got, want) << "step " << i;
    fill(prefetching.step, 77);  // the host memory is also used between steps
    prefetching.step.evaluate();
  }
  fill(prefetching.step, 4);
  prefetching.step.discard_prefetched();
  fill(plain.step, 4);
  EXPECT_EQ(prefetching.step.step(1e-2).loss, plain.step.step(1e-2).loss);
}

TEST_P(GpuModels, ContinueFromTheStateOfACpu) {
  SmallStep oracle(GetParam(), options());
  GpuStep gpu(GetParam(), options(), *device_, *device_);
  for (int i = 0; i < 2; ++i) oracle.step.step(1e-2);
  gpu.step.step(1e-2);
  const auto stream = device_->make_stream();
  const auto from = oracle.step.state(), to = gpu.step.state();
  ASSERT_EQ(from.size(), to.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(from[i].name, to[i].name);
    device_->copy(to[i].data, from[i].data, from[i].bytes, *stream);
    stream->synchronize();
  }
  for (int i = 0; i < 2; ++i) {
    const double want = oracle.step.step(1e-2).loss;
    EXPECT_NEAR(gpu.step.step(1e-2).loss, want, 2e-4 * want);
  }
}

TEST_P(GpuModels, ReportWhatIsNotFinite) {
  GpuStep gpu(GetParam(), options(), *device_, *device_);
  for (int i = 0; i < 2; ++i) gpu.step.step(1e-2);
  EXPECT_EQ(gpu.step.first_non_finite(), "");
  const auto before = bytes(gpu.step);
  const StatePart part = gpu.step.state().front();
  const float broken = std::numeric_limits<float>::quiet_NaN();
  const auto stream = device_->make_stream();
  std::vector<float> values(part.bytes / sizeof(float), broken);
  device_->copy(part.data, values.data(), part.bytes, *stream);
  stream->synchronize();
  EXPECT_TRUE(gpu.step.step(1e-2).skipped);
  EXPECT_EQ(gpu.step.first_non_finite(), part.name);
  const auto after = bytes(gpu.step);
  for (std::size_t i = 1; i < after.size(); ++i)
    if (gpu.step.state()[i].name.starts_with("weights/")) {
      EXPECT_EQ(before[i], after[i]);
    }
}

TEST_P(GpuModels, OverflowsSkipStepsAndHalveTheLossScale) {
  StepOptions made = options("fp16");
  GpuStep gpu(GetParam(), made, *device_, *device_);
  SmallStep plain(GetParam(), options("f32"));
  int skipped = 0;
  int steps = 0;
  for (; steps < 12 && (steps < 3 || skipped == steps); ++steps) skipped += gpu.step.step(1e-2).skipped ? 1 : 0;
  for (int i = skipped; i < steps; ++i) plain.step.step(1e-2);
  EXPECT_LT(skipped, 12);
  EXPECT_EQ(gpu.step.loss_scale(), std::ldexp(65536.0f, -skipped));
  EXPECT_NEAR(gpu.step.evaluate().loss, plain.step.evaluate().loss, 0.05);
}

TEST(StepGraph, IsNotAttemptedOnADeviceThatRunsInline) {
  SmallStep small("gpt2", small_options("gpt2"));
  for (int i = 0; i < 3; ++i) small.step.step(1e-2);
  EXPECT_EQ(small.step.graph(), "");
}

}  // namespace
}  // namespace assay::nn
