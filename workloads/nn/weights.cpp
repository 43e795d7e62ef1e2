#include "workloads/nn/state_parts.h"

#include "harness/core/rng.h"
#include "workloads/nn/arrays.h"
#include "workloads/ops/random.h"

#include <algorithm>

namespace assay::nn {

namespace {

constexpr std::int64_t chunk = std::int64_t{1} << 16;

// Writes elements [0, count) at `to`, one chunk at a time, from `fill(first, values)`.
template <typename Fill>
void write(std::byte* to, DType dtype, std::int64_t count, Device& device, Stream& stream, Fill fill) {
  std::vector<double> values;
  std::vector<std::byte> stored;
  for (std::int64_t first = 0; first < count; first += chunk) {
    values.resize(static_cast<std::size_t>(std::min(chunk, count - first)));
    fill(first, values);
    stored.resize(values.size() * size_of(dtype));
    store(stored.data(), dtype, values.data(), static_cast<std::int64_t>(values.size()));
    device.copy(to + static_cast<std::size_t>(first) * size_of(dtype), stored.data(), stored.size(), stream);
    stream.synchronize();
  }
}

}  // namespace

void initialise_weights(const StepPlan& plan, const StepMemory& memory, std::uint64_t seed, Device& device,
                        Stream& stream) {
  const DType master = plan.layout.options.precision.master;
  // The same numbers for any type of masters.
  std::vector<float> normal(static_cast<std::size_t>(chunk));
  for (std::size_t i = 0; i < plan.layout.specs.size(); ++i) {
    const ParameterSpec& spec = plan.layout.specs[i];
    const Rng rng(seed, spec.name);
    const Range part = plan.parameters.held(Array::masters, i, spec.count());
    if (part.count == 0) continue;
    const std::int64_t position = plan.parameters.position(Array::masters, i, part.first);
    std::byte* at = memory.weights() + plan.offset(Array::masters, position);
    write(at, master, part.count, device, stream, [&](std::int64_t done, std::vector<double>& values) {
      if (spec.initial != Initial::normal) {
        std::ranges::fill(values, spec.initial == Initial::ones ? 1.0 : 0.0);
        return;
      }
      const std::int64_t first = part.first + done, count = static_cast<std::int64_t>(values.size());
      ops::fill_random(normal.data() - first, DType::f32, first, first + count, rng);
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = spec.deviation * static_cast<double>(normal[k]);
    });
  }
  const auto constant = [&](std::byte* at, DType dtype, std::int64_t count, double value) {
    write(at, dtype, count, device, stream,
          [=](std::int64_t, std::vector<double>& values) { std::ranges::fill(values, value); });
  };
  for (int m = 0; m < plan.moments(); ++m)
    constant(memory.moment(m), master, plan.parameters.size(Array::moments), 0.0);
  for (const RunningStatistic& entry : plan.layout.running)
    constant(memory.running() + entry.offset, entry.dtype, entry.elements, entry.initial);
}

}  // namespace assay::nn
