// Whole models on a device: its gradients against differences of its own loss, its losses against the CPU's, and
// checkpoints written on one and resumed on the other.
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "tests/support/devices.h"
#include "tests/unit/nn/small_models.h"
#include "workloads/training/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace assay::nn {
namespace {

using test::small_options;

// Training of a small model on a device.
class Training {
 public:
  Training(std::shared_ptr<Device> device, const std::string& kind, const StepOptions& options)
      : device_(std::move(device)),
        stream_(device_->make_stream()),
        comm_(make_self_communicator()),
        step_(*test::model(kind), options, *device_, ops::backend_for(*device_), *comm_) {
    step_.allocate();
    step_.initialise(1);
    test::fill(step_.inputs(0), test::classes_of(kind), 0);
  }

  double step(double rate) { return step_.step(rate).loss; }

  void save(const std::filesystem::path& file) {
    training::write_checkpoint(file, {.identity = identity_}, step_.state(), *device_, *comm_);
  }
  void restore(const std::filesystem::path& file) {
    training::read_checkpoint(file, identity_, step_.state(), *device_, *comm_);
  }

  std::map<std::string, std::vector<float>> gradients() { return read(step_.gradients(), ""); }
  std::map<std::string, std::vector<float>> weights() { return read(step_.state(), "weights/"); }
  void set_weights(const std::map<std::string, std::vector<float>>& weights) {
    for (const StatePart& part : step_.state())
      if (const auto found = weights.find(part.name); found != weights.end())
        device_->copy(part.data, found->second.data(), part.bytes, *stream_);
    stream_->synchronize();
  }

 private:
  std::map<std::string, std::vector<float>> read(const std::vector<StatePart>& parts, std::string_view prefix) {
    std::map<std::string, std::vector<float>> all;
    for (const StatePart& part : parts) {
      if (!part.name.starts_with(prefix)) continue;
      std::vector<float>& values = all[part.name];
      values.resize(part.bytes / sizeof(float));
      device_->copy(values.data(), part.data, part.bytes, *stream_);
    }
    stream_->synchronize();
    return all;
  }

  training::CheckpointIdentity identity_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Communicator> comm_;
  TrainingStep step_;
};

class OnDevice : public testing::TestWithParam<std::tuple<DeviceKind, const char*>> {
 protected:
  std::string model() const { return std::get<1>(GetParam()); }
  // Null, with the reason, if the machine has no such device or the device lacks an op.
  std::unique_ptr<Training> training(DeviceKind kind, std::string_view precision, std::string& why_not) {
    const auto device = assay::test::device_of(kind, why_not);
    if (!device) return nullptr;
    if (kind == DeviceKind::cpu) {
      static const cpu::Team team(cpu::rank_cores());
      team.use();
    }
    try {
      return std::make_unique<Training>(device, model(), small_options(model(), precision));
    } catch (const UsageError& error) {
      why_not = error.what();
      return nullptr;
    }
  }
};

// The slope of the loss along its gradient is the gradient's norm; compares it with a central difference.
TEST_P(OnDevice, GradientIsTheSlopeOfTheLoss) {
  std::string why_not;
  const auto training_step = training(std::get<0>(GetParam()), "f32", why_not);
  if (!training_step) GTEST_SKIP() << why_not;
  training_step->step(0.0);
  const auto gradients = training_step->gradients();
  const auto weights = training_step->weights();
  double squares = 0;
  for (const auto& [name, values] : gradients)
    for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  const double norm = std::sqrt(squares);
  ASSERT_GT(norm, 0);
  constexpr double reach = 5e-3;  // beyond this the loss is no longer a parabola
  const auto loss_at = [&](double distance) {
    auto moved = weights;
    std::size_t found = 0;
    for (const auto& [name, values] : gradients) {
      const auto at = moved.find("weights/" + name.substr(name.find('/') + 1));
      if (at == moved.end() || at->second.size() != values.size()) continue;
      ++found;
      for (std::size_t i = 0; i < values.size(); ++i)
        at->second[i] += static_cast<float>(distance * static_cast<double>(values[i]) / norm);
    }
    EXPECT_EQ(found, gradients.size());
    training_step->set_weights(moved);
    return training_step->step(0.0);
  };
  const double slope = (loss_at(reach) - loss_at(-reach)) / (2 * reach);
  EXPECT_NEAR(slope / norm, 1.0, 0.02);
}

class FollowsTheCpu : public OnDevice {
 protected:
  // `limit` 0: bitwise equal.
  void compare(const char* precision, double limit) {
    std::string why_not;
    const auto own = training(std::get<0>(GetParam()), precision, why_not);
    if (!own) GTEST_SKIP() << why_not;
    const auto cpu = training(DeviceKind::cpu, "f32", why_not);
    ASSERT_TRUE(cpu) << why_not;
    for (int i = 0; i < 20; ++i) {
      const double got = own->step(1e-2), want = cpu->step(1e-2);
      ASSERT_NEAR(got, want, limit * std::max(want, 1.0)) << precision << ", step " << i;
    }
    if (limit == 0) {
      EXPECT_EQ(own->weights(), cpu->weights());
    }
  }
};

// Two runs on a CPU are bitwise equal.
TEST_P(FollowsTheCpu, InF32) { compare("f32", std::get<0>(GetParam()) == DeviceKind::cpu ? 0 : 1e-3); }
TEST_P(FollowsTheCpu, InBf16) { compare("bf16", 6e-2); }

// Checkpoints are independent of the device: either can resume the other's, and both continue alike.
TEST_P(OnDevice, ResumesACheckpointOfTheCpuAndBack) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("assay-checkpoint-{}", ::getpid());
  for (const bool back : {false, true}) {
    std::string why_not;
    const auto own = training(std::get<0>(GetParam()), "f32", why_not);
    if (!own) GTEST_SKIP() << why_not;
    const auto cpu = training(DeviceKind::cpu, "f32", why_not);
    ASSERT_TRUE(cpu) << why_not;
    Training& writer = back ? *own : *cpu;
    Training& reader = back ? *cpu : *own;
    for (int i = 0; i < 3; ++i) writer.step(1e-2);
    writer.save(file);
    reader.restore(file);
    EXPECT_EQ(reader.weights(), writer.weights());
    for (int i = 0; i < 5; ++i) {
      const double got = reader.step(1e-2), want = writer.step(1e-2);
      EXPECT_NEAR(got, want, 1e-3 * std::max(want, 1.0)) << (back ? "back" : "there") << ", step " << i;
    }
  }
  std::filesystem::remove(file);
}

const auto every_model = testing::Combine(testing::Values(DeviceKind::cpu, DeviceKind::cuda),
                                          testing::Values("gpt2", "llama", "bert", "basic", "bottleneck"));
std::string name_of_instance(const testing::TestParamInfo<OnDevice::ParamType>& instance) {
  return std::string(name_of(std::get<0>(instance.param))) + "_" + std::get<1>(instance.param);
}
INSTANTIATE_TEST_SUITE_P(All, OnDevice, every_model, name_of_instance);
INSTANTIATE_TEST_SUITE_P(All, FollowsTheCpu, every_model, name_of_instance);

}  // namespace
}  // namespace assay::nn
