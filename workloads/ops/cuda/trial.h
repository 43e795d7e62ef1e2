// Choosing among several ways to do one op when it is made: the fastest by trial, kept by descriptor.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::ops {

// Seconds on the stream of one run of each of the ways, the least of a few rounds in which they take turns; infinity
// where cuDNN refuses to run it. What it takes to launch them is not counted.
std::vector<double> trial_seconds(Device& device, Stream& stream, const std::vector<std::function<void()>>& ways);

// Device memory for trial runs of one op, freed as a whole. Throws Error if the device runs out of memory.
class TrialArrays {
 public:
  TrialArrays(Device& device, Stream& stream, std::size_t workspace_bytes)
      : device_(device),
        stream_(stream),
        workspace_(keep(device.allocate(std::max<std::size_t>(workspace_bytes, 1)))) {}

  // Random numbers, written in stream order; the same numbers for the same purpose.
  void* array(DType dtype, std::int64_t count, std::string_view purpose);
  void* workspace() const { return workspace_; }
  void* keep(Buffer buffer) { return buffers_.emplace_back(std::move(buffer)).data(); }

 private:
  Device& device_;
  Stream& stream_;
  std::vector<Buffer> buffers_;
  void* workspace_;
};

// Enqueues one run of an op on trial arrays that it owns.
template <typename Op>
using TryOut = std::function<void(Op&)>;

// Choices made in this process; ops are made by several threads. One lives for ever: at the process's end cuDNN's
// libraries, loaded after it was made, are tidied up before it would be.
template <typename Key, typename Choice>
class KnownChoices {
 public:
  std::optional<Choice> find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = choices_.find(key);
    return found == choices_.end() ? std::nullopt : std::optional(found->second);
  }
  void remember(const Key& key, Choice choice) {
    const std::lock_guard lock(mutex_);
    choices_.insert_or_assign(key, std::move(choice));
  }

 private:
  mutable std::mutex mutex_;
  std::map<Key, Choice> choices_;
};

// The fastest of the ops, which `run(op)` enqueues on the stream, or of those that are level the one with the least
// workspace; by its index. Nothing where no op ran: a plan that cuDNN built and cannot run is passed over.
template <typename Op, typename Run>
std::optional<std::size_t> fastest(Device& device, Stream& stream, const std::vector<std::unique_ptr<Op>>& ops,
                                   const Run& run) {
  constexpr double level = 1.01;
  if (ops.empty()) return std::nullopt;
  std::vector<std::function<void()>> ways;
  for (const std::unique_ptr<Op>& op : ops) ways.push_back([&run, at = op.get()] { run(*at); });
  const std::vector<double> seconds = trial_seconds(device, stream, ways);
  const double least = *std::min_element(seconds.begin(), seconds.end());
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (std::isfinite(seconds[i]) && seconds[i] <= level * least &&
        (!best || ops[i]->workspace_bytes() < ops[*best]->workspace_bytes()))
      best = i;
  return best;
}

}  // namespace assay::ops
