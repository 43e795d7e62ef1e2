#include "workloads/ops/cuda/trial.h"

#include "harness/core/rng.h"
#include "harness/device/cuda/native.h"
#include "workloads/ops/cuda/fill.h"

#include <cmath>

namespace assay::ops {

double trial_seconds(Device& device, Stream& stream, const std::function<void()>& run) {
  constexpr double enough = 200e-6;  // seconds of a round
  constexpr int most_runs = 20, rounds = 3;
  const auto start = device.make_event(), end = device.make_event();
  const auto timed = [&](int runs) {
    start->record(stream);
    for (int i = 0; i < runs; ++i) run();
    end->record(stream);
    end->synchronize();
    return end->seconds_since(*start) / runs;
  };
  run();
  const double once = timed(1);
  const int runs = once * most_runs > enough ? std::max(1, static_cast<int>(std::ceil(enough / once))) : most_runs;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) least = std::min(least, timed(runs));
  return least;
}

Buffer random_array(Device& device, Stream& stream, DType dtype, std::int64_t count, std::string_view purpose) {
  Buffer buffer = device.allocate(static_cast<std::size_t>(count) * size_of(dtype));
  fill_random_on_device(buffer.data(), dtype, count, Rng(1, purpose), cuda::native(stream));
  return buffer;
}

}  // namespace assay::ops
