#include "workloads/ops/cuda/trial.h"

#include "harness/core/rng.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/agreement.h"
#include "workloads/ops/cuda/fill.h"
#include "workloads/ops/random.h"
#include "workloads/ops/trial_timer.h"

namespace assay::ops {

std::vector<double> trial_seconds(Device& device, Stream& stream,
                                  const std::vector<std::function<void()>>& candidates) {
  constexpr double round_seconds = 200e-6;
  constexpr int max_runs = 20, rounds = 5;
  TrialTimer timer(device, stream);  // captured steps have no launch overhead, so do not time it here
  return timer.comparison([&] {
    std::vector<double> least(candidates.size(), std::numeric_limits<double>::infinity());
    std::vector<int> runs(candidates.size(), 0);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      try {
        timer.seconds(candidates[i], 1, true);
        const double once = timer.seconds(candidates[i], 1);
        runs[i] =
            once * max_runs > round_seconds ? std::max(1, static_cast<int>(std::ceil(round_seconds / once))) : max_runs;
      } catch (const cudnn::RunError&) {
      }
    }
    // Interleaved, so that rising clocks favour none.
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < candidates.size(); ++i)
        if (runs[i] > 0) least[i] = std::min(least[i], timer.seconds(candidates[i], runs[i]));
    return least;
  });
}

void* TrialArrays::array(DType dtype, std::int64_t count, std::string_view purpose) {
  return add({nullptr, dtype, count, std::string(purpose), {}});
}

void* TrialArrays::array_near(double value, std::int64_t count, std::string_view purpose) {
  return add({nullptr, DType::f32, count, std::string(purpose), value});
}

void* TrialArrays::add(const Contents& contents) {
  contents_.push_back(contents);
  contents_.back().data = keep(device_.allocate(static_cast<std::size_t>(contents.count) * size_of(contents.dtype)));
  fill(contents_.back());
  return contents_.back().data;
}

void TrialArrays::fill(const Contents& contents) {
  const auto& [data, dtype, count, purpose, near] = contents;
  const Rng rng(1, purpose);
  if (!near) return fill_random_on_device(data, dtype, count, rng, cuda::native(stream_));
  std::vector<float> values(static_cast<std::size_t>(count));
  fill_random(values.data(), DType::f32, 0, count, rng);
  for (float& value : values) value = static_cast<float>(*near) + 0.1f * value;
  device_.copy(data, values.data(), values.size() * sizeof(float), stream_);
  stream_.synchronize();
}

void TrialArrays::refill_and_run(const std::function<void()>& run) {
  for (const Contents& contents : contents_) fill(contents);
  run();
}

void TrialArrays::expect(const std::function<void()>& run) {
  for (Output& output : outputs_)
    if (!output.expected) output.expected = keep(device_.allocate(output.bytes()));
  refill_and_run(run);
  for (const Output& output : outputs_) device_.copy(output.expected, output.data, output.bytes(), stream_);
}

std::string TrialArrays::disagreement(const std::function<void()>& run) {
  refill_and_run(run);
  for (const auto& [name, data, dtype, count, tolerance, expected] : outputs_)
    if (!agree(device_, stream_, data, expected, dtype, count, tolerance)) return name;
  return {};
}

}  // namespace assay::ops
