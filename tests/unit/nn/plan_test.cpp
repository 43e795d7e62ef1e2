// The memory that is planned without a device against the plan of the real step: on this machine's CPU every model, on
// a GPU or its emulation the small ones.
#include "harness/core/error.h"
#include "tests/support/devices.h"
#include "tests/unit/nn/shipped_models.h"
#include "workloads/nn/planning_backend.h"
#include "workloads/nn/step_plan.h"
#include "workloads/nn/training_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace assay::nn {
namespace {

StepOptions options_of(const Model& model, const char* precision, bool recomputes, std::int64_t accumulate) {
  StepOptions options;
  options.precision = precision_from(precision);
  options.checkpointing = recomputes ? Checkpointing::full : Checkpointing::none;
  options.accumulate = accumulate;
  options.evaluation = false;
  options.optimizer = model.images() ? ops::OptimizerKind::sgd : ops::OptimizerKind::adamw;
  options.batch.samples = model.images() ? 2 : 4;  // backends time their convolutions
  options.batch.seq = model.images() ? 0 : std::min<std::int64_t>(512, model.input().positions);
  return options;
}

// The plan of the real step; nothing if the device lacks an op.
std::optional<MemoryPlan> real_plan(const Model& model, const StepOptions& options, Device& device) {
  const auto comm = make_self_communicator();
  try {
    return TrainingStep(model, options, device, ops::backend_for(device), *comm).memory();
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

double off_by(std::uint64_t planned, std::uint64_t real) {
  return std::abs(static_cast<double>(planned) - static_cast<double>(real));
}

// Within 2 % or 64 MiB.
void expect_near(const MemoryPlan& planned, const MemoryPlan& real, const std::string& what) {
  constexpr double tolerance = 0.02, least = 64 << 20;
  EXPECT_LE(off_by(planned.total(), real.total()), std::max(tolerance * static_cast<double>(real.total()), least))
      << what << "\n  " << planned.text() << "\n  " << real.text();
  EXPECT_EQ(planned.gradients, real.gradients) << what;
  EXPECT_EQ(planned.optimizer, real.optimizer) << what;
}

class OnCpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = assay::test::device_of(DeviceKind::cpu, why_not);
    ASSERT_TRUE(device_) << why_not;
  }
  std::shared_ptr<Device> device_;
};

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const auto& file : test::shipped_files()) names.push_back(file.stem().string());
  return names;
}
std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, OnCpu, testing::ValuesIn(all_models()), test_name);

TEST_P(OnCpu, TheEstimateIsTheStepsOwnPlan) {
  const auto model = test::shipped(GetParam());
  for (const char* precision : {"f32", "bf16"})
    for (const bool recomputes : {false, true})
      for (const std::int64_t accumulate : {1, 2}) {
        const StepOptions options = options_of(*model, precision, recomputes, accumulate);
        const auto real = real_plan(*model, options, *device_);
        if (!real) continue;  // a CPU without bf16
        const MemoryPlan planned = plan_memory(*model, options);
        expect_near(planned, *real,
                    fmt::format("{}{}, accumulate {}", precision, recomputes ? ", full" : "", accumulate));
        if (accumulate == 1) continue;  // only those packed forms that are in use at the peak
        EXPECT_LE(off_by(planned.weights, real->weights), 0.05 * static_cast<double>(real->weights)) << precision;
      }
}

StepOptions on(StepOptions options, std::int64_t ranks, int zero) {
  options.layout = {.dp = ranks, .zero = zero};
  return options;
}

TEST_P(OnCpu, TheEstimateOfDividedStateIsTheStepsOwnPlan) {
  const auto model = test::shipped(GetParam());
  for (const char* precision : {"f32", "bf16"})
    for (const int zero : {1, 2, 3}) {
      StepOptions options = on(options_of(*model, precision, false, 1), 4, zero);
      if (!model->images() && zero == 3) options.checkpointing = Checkpointing::selective;
      std::optional<StepPlan> real;
      try {
        real.emplace(*model, options, profile_of(*device_), ops::backend_for(*device_), 2);
      } catch (const UsageError&) {
        continue;  // a CPU without bf16
      }
      const std::string what = fmt::format("{}, zero {}", precision, zero);
      expect_near(plan_memory(*model, options), real->memory, what);
      options.layout.dp = 8;
      expect_near(real->memory_on(8), plan_memory(*model, options), what + " on 8 ranks");
    }
}

class OnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string why_not;
    device_ = assay::test::device_of(DeviceKind::cuda, why_not);
    if (!device_) GTEST_SKIP() << why_not;
  }
  std::shared_ptr<Device> device_;
};
INSTANTIATE_TEST_SUITE_P(Tiny, OnGpu, testing::Values("gpt2-tiny", "llama-tiny", "resnet-tiny"), test_name);

// Without the scratch of its libraries, and what is planned around that. A convolution pads the three colours.
TEST_P(OnGpu, TheEstimateIsTheStepsOwnPlan) {
  const auto model = test::shipped(GetParam());
  for (const char* precision : {"f32", "bf16"}) {
    StepOptions options = options_of(*model, precision, false, 2);
    options.batch.samples = 1;
    options.batch.seq = std::min<std::int64_t>(options.batch.seq, 32);
    const auto real = real_plan(*model, options, *device_);
    ASSERT_TRUE(real);
    const MemoryPlan planned = plan_memory(*model, options, profile_of(*device_));
    EXPECT_LE(off_by(planned.weights, real->weights), 0.02 * static_cast<double>(real->weights)) << precision;
    EXPECT_EQ(planned.gradients, real->gradients) << precision;
    EXPECT_EQ(planned.optimizer, real->optimizer) << precision;
    EXPECT_LE(off_by(planned.total() - planned.workspace, real->total() - real->workspace),
              static_cast<double>(real->workspace) + 0.02 * static_cast<double>(real->total()))
        << precision << "\n  " << planned.text() << "\n  " << real->text();
  }
}

TEST(Layouts, DivideTheStateOfAModel) {
  const auto model = test::shipped("llama-160m");
  const StepOptions options = options_of(*model, "bf16", false, 1);
  const DeviceProfile gpu{DeviceKind::cuda, std::uint64_t{80} << 30};
  const MemoryPlan alone = plan_memory(*model, options, gpu);
  constexpr double parameters = 162417408;
  const auto state = [](const MemoryPlan& plan) {
    return static_cast<double>(plan.weights + plan.gradients + plan.optimizer);
  };
  const double tables = state(alone) - 18 * parameters;  // cosines and sines, gaps between parameters
  EXPECT_LT(tables, 0.005 * state(alone));
  const double stages[] = {18, 6 + 12 / 8.0, 2 + 16 / 8.0, 18 / 8.0};
  for (int zero = 0; zero <= 3; ++zero) {
    const MemoryPlan plan = plan_memory(*model, on(options, 8, zero), gpu);
    EXPECT_NEAR(state(plan) - tables, stages[zero] * parameters, 0.001 * stages[zero] * parameters) << zero;
    EXPECT_EQ(plan.activations, alone.activations);
    EXPECT_EQ(plan.communication > 0, zero > 1);
  }
  // Memory is largest while the head's gradient is whole, beside logits.
  EXPECT_EQ(plan_memory(*model, on(options, 8, 2), gpu).communication, 4u * 32000 * 768);
  StepOptions fp8 = options_of(*model, "fp8", false, 1);
  EXPECT_THROW(plan_memory(*model, on(fp8, 8, 1), gpu), UsageError);
  EXPECT_THROW(plan_memory(*model, on(options, 8, 4), gpu), UsageError);
}

}  // namespace
}  // namespace assay::nn
