// Training steps of small models against PyTorch's in float64 from the same weights and inputs: the oracle in f64
// agrees to rounding, a device in f32 has at most twice PyTorch's own float32 error.
#include "tests/golden/golden_file.h"

#include "harness/comm/communicator.h"
#include "harness/core/error.h"
#include "harness/device/cpu/team.h"
#include "harness/json/json.h"
#include "tests/oracle/oracle.h"
#include "tests/support/devices.h"
#include "workloads/nn/training_step.h"
#include "workloads/resnet/resnet.h"
#include "workloads/transformer/transformer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace assay::golden {
namespace {

// The source tree: where it was built, or where it was copied to.
const std::filesystem::path root =
    std::getenv("ASSAY_SOURCE_ROOT") ? std::getenv("ASSAY_SOURCE_ROOT") : ASSAY_SOURCE_ROOT;
const std::filesystem::path folder = root / "tests/golden";

constexpr int steps = 10;
// The oracle in f64 sums in another order.
constexpr double f64_relative = 1e-10;
// Every device stores the clipping coefficient in f32.
constexpr double clipped_relative = 1e-6;
// A gradient that is zero by symmetry is noise, up to this fraction of the whole gradient's norm.
constexpr double symmetric_f64 = 1e-13;
constexpr double symmetric_f32 = 1e-6;

enum class Side { reference_f64, reference_f32, cpu_f32, cuda_f32 };

std::string name_of(Side side) {
  switch (side) {
    case Side::reference_f64: return "reference_f64";
    case Side::reference_f32: return "reference_f32";
    case Side::cpu_f32: return "cpu_f32";
    case Side::cuda_f32: break;
  }
  return "cuda_f32";
}

struct Case {
  std::string name;
  Json json;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> cases() {
  std::vector<Case> list;
  const Json file = read_json(folder / "cases.json");
  for (const Json& json : file.at("cases")) list.push_back({json.at("name"), json});
  return list;
}

std::unique_ptr<nn::Model> model_of(const Case& c) {
  const std::filesystem::path path = root / c.json.at("model").get<std::string>();
  const Json config = read_json(path);
  if (config.at("family") == "resnet") return resnet::make_resnet(resnet::read_config(config, path.string(), c.name));
  return transformer::make_transformer(transformer::read_config(config, path.string(), c.name));
}

nn::StepOptions options_of(const Case& c, bool f64) {
  nn::StepOptions options;
  options.precision = nn::precision_from(f64 ? "f64" : "f32");
  options.batch = {c.json.at("samples"), c.json.value("seq", std::int64_t{0})};
  options.smoothing = c.json.value("smoothing", 0.0);
  options.max_norm = c.json.value("max_norm", 0.0);
  const Json& o = c.json.at("optimizer");
  options.weight_decay = o.at("weight_decay");
  if (o.at("kind") == "sgd") {
    options.optimizer = ops::OptimizerKind::sgd;
    options.momentum = o.at("momentum");
  } else {
    options.beta1 = o.at("beta1");
    options.beta2 = o.at("beta2");
    options.epsilon = o.at("epsilon");
  }
  return options;
}

double norm_of(std::span<const double> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

using Parameters = std::tuple<Side, Case>;

class GoldenStep : public testing::TestWithParam<Parameters> {
 protected:
  Side side() const { return std::get<0>(GetParam()); }
  const Case& shape() const { return std::get<1>(GetParam()); }
  bool f64() const { return side() == Side::reference_f64; }
  bool oracle() const { return side() == Side::reference_f64 || side() == Side::reference_f32; }

  // Null, with the reason, if the device is missing or lacks an op.
  std::unique_ptr<nn::TrainingStep> make_step(nn::StepOptions options, std::string& reason) {
    device_ = test::device_of(side() == Side::cuda_f32 ? DeviceKind::cuda : DeviceKind::cpu, reason);
    if (!device_) return nullptr;
    stream_ = device_->make_stream();
    if (device_->kind() == DeviceKind::cpu) {
      static const cpu::Team team(cpu::rank_cores());
      team.use();
    }
    const auto backend = oracle() ? ops::make_reference_backend() : ops::backend_for(*device_);
    try {
      auto step = std::make_unique<nn::TrainingStep>(*model_, options, *device_, backend, *comm_);
      step->allocate();
      return step;
    } catch (const UsageError& error) {
      if (oracle()) throw;
      reason = error.what();
      return nullptr;
    }
  }

  std::vector<double> values_of(const nn::StatePart& part) {
    std::vector<double> values(part.bytes / size_of(part.dtype));
    std::vector<float> narrow(part.dtype == DType::f64 ? 0 : values.size());
    device_->copy(narrow.empty() ? static_cast<void*>(values.data()) : narrow.data(), part.data, part.bytes, *stream_);
    stream_->synchronize();
    std::copy(narrow.begin(), narrow.end(), values.begin());
    return values;
  }

  void set_weights(nn::TrainingStep& step) {
    step.initialise(1);
    std::size_t set = 0;
    for (const nn::StatePart& part : step.state()) {
      if (!part.name.starts_with("weights/")) continue;
      const auto found = file_.find(part.name);
      ASSERT_NE(found, file_.end()) << part.name << " is not in the golden file";
      ASSERT_EQ(part.shape, found->second.shape) << part.name;
      const std::vector<double>& values = found->second.values;
      const std::vector<float> narrow(values.begin(), values.end());
      device_->copy(part.data, f64() ? static_cast<const void*>(values.data()) : narrow.data(), part.bytes, *stream_);
      stream_->synchronize();
      ++set;
    }
    EXPECT_EQ(set, std::count_if(file_.begin(), file_.end(),
                                 [](const auto& entry) { return entry.first.starts_with("weights/"); }))
        << "parameters";
  }

  template <typename T>
  void fill(std::span<T> input, const std::string& name) {
    const auto found = file_.find("inputs/" + name);
    ASSERT_EQ(input.empty(), found == file_.end()) << name;
    if (input.empty()) return;
    ASSERT_EQ(input.size(), found->second.values.size()) << name;
    std::transform(found->second.values.begin(), found->second.values.end(), input.begin(),
                   [](double value) { return static_cast<T>(value); });
  }

  void set_inputs(nn::TrainingStep& step) {
    const nn::Inputs inputs = step.inputs(0);
    fill(inputs.ids, "ids");
    fill(inputs.type_ids, "type_ids");
    fill(inputs.lengths, "lengths");
    fill(inputs.images, "images");
    fill(inputs.targets, "targets");
  }

  // The loss of each row in evaluation, by ignoring all other targets of the batch.
  std::vector<double> row_losses(nn::TrainingStep& step) {
    const std::span<std::int32_t> targets = step.inputs(0).targets;
    const std::vector<std::int32_t> all(targets.begin(), targets.end());
    std::vector<double> losses;
    for (std::size_t row = 0; row < all.size(); ++row) {
      std::fill(targets.begin(), targets.end(), -100);
      targets[row] = all[row];
      losses.push_back(all[row] == -100 ? 0.0 : step.evaluate().loss_sum);
    }
    std::copy(all.begin(), all.end(), targets.begin());
    return losses;
  }

  void expect_close(const std::string& name, const std::vector<double>& got, bool after_clipping = false) {
    const auto found = file_.find(name);
    ASSERT_NE(found, file_.end()) << name << " is not in the golden file";
    const Tensor& want = found->second;
    ASSERT_EQ(got.size(), want.values.size()) << name;
    std::vector<double> difference(got.size());
    std::transform(got.begin(), got.end(), want.values.begin(), difference.begin(), std::minus<>());
    const double error = norm_of(difference), norm = norm_of(want.values);
    const double relative = after_clipping && shape().json.contains("max_norm") ? clipped_relative : f64_relative;
    EXPECT_LE(error, f64() ? relative * norm : 2 * want.error) << name << ", of norm " << norm;
    if (std::getenv("ASSAY_GOLDEN_ERRORS"))
      std::cout << name_of(side()) << ' ' << shape().name << ' ' << name << ": "
                << (f64() ? error / norm : error / want.error) << (f64() ? " of its norm\n" : " of PyTorch's error\n");
  }

  // Softmax ignores a constant added to all of a query's scores, so the key bias has no gradient.
  void expect_no_key_bias(const std::string& name, std::span<const double> gradient) {
    const Json config = read_json(root / shape().json.at("model").get<std::string>());
    const std::size_t heads = config.at("heads"), kv_heads = config.value("kv_heads", heads);
    const std::size_t head_dim = gradient.size() / (heads + 2 * kv_heads);
    EXPECT_LE(norm_of(gradient.subspan(heads * head_dim, kv_heads * head_dim)),
              (f64() ? symmetric_f64 : symmetric_f32) * norm_of(gradient))
        << name;
  }

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  const std::unique_ptr<nn::Model> model_ = model_of(shape());
  const std::unique_ptr<Communicator> comm_ = make_self_communicator();
  const File file_ = read(folder / (shape().name + ".golden"));
};

TEST_P(GoldenStep, AgreesWithPyTorch) {
  std::string reason;
  const auto step = make_step(options_of(shape(), f64()), reason);
  if (!step) GTEST_SKIP() << reason;
  set_weights(*step);
  set_inputs(*step);
  expect_close("rows", row_losses(*step));

  const double learning_rate = shape().json.at("optimizer").at("learning_rate");
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const nn::StepResult result = step->step(learning_rate);
    EXPECT_FALSE(result.skipped);
    losses.push_back(result.loss);
    if (i > 0) continue;
    expect_close("loss", losses);
    std::size_t count = 0;
    for (const nn::StatePart& part : step->gradients()) {
      const std::vector<double> gradient = values_of(part);
      expect_close(part.name, gradient);
      if (part.name.ends_with("qkv.bias")) expect_no_key_bias(part.name, gradient);
      ++count;
    }
    EXPECT_EQ(count, model_->parameters().size());
  }
  expect_close("losses", losses, true);
  expect_close("trained_rows", row_losses(*step), true);
  for (const nn::StatePart& part : step->state())
    if (part.name.starts_with("running_")) expect_close(part.name, values_of(part), true);
}

// Checkpointing recomputes activations from the same numbers, so results are bitwise equal.
TEST_P(GoldenStep, CheckpointingChangesNothing) {
  nn::StepOptions options = options_of(shape(), f64());
  std::vector<std::vector<double>> gradients;
  for (const auto checkpointing : {nn::Checkpointing::none, nn::Checkpointing::full}) {
    options.checkpointing = checkpointing;
    std::string reason;
    const auto step = make_step(options, reason);
    if (!step) GTEST_SKIP() << reason;
    set_weights(*step);
    set_inputs(*step);
    step->step(0.0);
    gradients.emplace_back();
    for (const nn::StatePart& part : step->gradients()) {
      const std::vector<double> values = values_of(part);
      gradients.back().insert(gradients.back().end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

std::string test_name(const testing::TestParamInfo<Parameters>& info) {
  std::string name = name_of(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenStep,
                         testing::Combine(testing::Values(Side::reference_f64, Side::reference_f32, Side::cpu_f32,
                                                          Side::cuda_f32),
                                          testing::ValuesIn(cases())),
                         test_name);

}  // namespace
}  // namespace assay::golden
