// Chooses the fastest implementation when an op is made: timed on random data, remembered by descriptor.
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

// This process's choices; thread-safe. Instances are never destroyed: at exit, cuDNN's libraries, loaded later, would
// be cleaned up before them.
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

// The index of the fastest op, which `run(op)` enqueues on the stream; among ops within 1 % the one with the least
// workspace. Nothing if no op ran: plans that cuDNN builds but cannot run are skipped.
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
    if (std::isfinite(seconds[i]) && seconds[i] <= tolerance * least &&
        (!best || ops[i]->workspace_bytes() < ops[*best]->workspace_bytes()))
      best = i;
  return best;
}

}  // namespace assay::ops
