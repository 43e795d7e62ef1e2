// Chooses the fastest implementation when an op is made, timed on random data.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"
#include "workloads/ops/algorithm_cache.h"
#include "workloads/ops/cuda/cudnn/plan.h"
#include "workloads/ops/tolerance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::ops {

// Seconds per run of each candidate on the stream: the minimum of a few interleaved rounds, without launch overhead;
// infinity if cuDNN cannot run it.
std::vector<double> trial_seconds(Device& device, Stream& stream, const std::vector<std::function<void()>>& candidates);

// Device memory for trial runs of one op, freed as a whole. Throws Error if the device runs out of memory.
class TrialArrays {
 public:
  TrialArrays(Device& device, Stream& stream, std::size_t workspace_bytes)
      : device_(device),
        stream_(stream),
        workspace_(keep(device.allocate(std::max<std::size_t>(workspace_bytes, 1)))) {}

  // Random numbers, written in stream order; the same numbers for the same purpose.
  void* array(DType dtype, std::int64_t count, std::string_view purpose);
  // The same in f32, close to `value`: batch norm's statistics and parameters.
  void* array_near(double value, std::int64_t count, std::string_view purpose);
  void* workspace() const { return workspace_; }
  void* keep(Buffer buffer) { return buffers_.emplace_back(std::move(buffer)).data(); }

  // Declares an array to be an output, in which implementations must agree.
  void compare(std::string name, void* data, DType dtype, std::int64_t count, const Tolerance& tolerance) {
    outputs_.push_back({std::move(name), data, dtype, count, tolerance, nullptr});
  }
  // Runs on the original contents of all arrays and keeps the outputs, with which other runs are compared.
  void expect(const std::function<void()>& run);
  // Runs on the original contents of all arrays. Returns the first output that disagrees with the kept outputs, or
  // nothing.
  std::string disagreement(const std::function<void()>& run);

 private:
  struct Contents {
    void* data;
    DType dtype;
    std::int64_t count;
    std::string purpose;
    std::optional<double> near;
  };
  struct Output {
    std::string name;
    void* data;
    DType dtype;
    std::int64_t count;
    Tolerance tolerance;
    void* expected;  // a copy, null until expect()
    std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
  };
  void* add(const Contents& contents);
  void fill(const Contents& contents);
  void refill_and_run(const std::function<void()>& run);

  Device& device_;
  Stream& stream_;
  std::vector<Buffer> buffers_;
  std::vector<Contents> contents_;
  std::vector<Output> outputs_;
  void* workspace_;
};

// Enqueues one run of an op on trial arrays that it owns.
template <typename Op>
using TryOut = std::function<void(Op&)>;

// The index of the fastest op, which `run(op)` enqueues on the stream; among ops within 1 % the one with the least
// workspace; the first that ran if by_heuristics(). Nothing if no op ran: plans that cuDNN builds but cannot run are
// skipped.
template <typename Op, typename Run>
std::optional<std::size_t> fastest(Device& device, Stream& stream, const std::vector<std::unique_ptr<Op>>& ops,
                                   const Run& run) {
  constexpr double tolerance = 1.01;
  if (ops.empty()) return std::nullopt;
  std::vector<std::function<void()>> candidates;
  for (const std::unique_ptr<Op>& op : ops) candidates.push_back([&run, at = op.get()] { run(*at); });
  const std::vector<double> seconds = trial_seconds(device, stream, candidates);
  const double least = *std::min_element(seconds.begin(), seconds.end());
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (std::isfinite(seconds[i]) && by_heuristics())
      return i;
    else if (std::isfinite(seconds[i]) && seconds[i] <= tolerance * least &&
             (!best || ops[i]->workspace_bytes() < ops[*best]->workspace_bytes()))
      best = i;
  return best;
}

}  // namespace assay::ops
