// Choosing among several ways to do one op when it is made: the fastest by trial, kept by descriptor.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"
#include "workloads/ops/cuda/cudnn/plan.h"

#include <algorithm>
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

// Seconds of `run` on the stream: the least of three rounds, after one that is not timed.
double trial_seconds(Device& device, Stream& stream, const std::function<void()>& run);

// Device memory full of random numbers, written in the order of the stream. Throws Error where there is none left.
Buffer random_array(Device& device, Stream& stream, DType dtype, std::int64_t count, std::string_view purpose);

// Choices made in this process; ops are made by several threads.
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
  constexpr double level = 1.01, never = std::numeric_limits<double>::infinity();
  std::vector<double> seconds(ops.size(), never);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    try {
      seconds[i] = trial_seconds(device, stream, [&] { run(*ops[i]); });
    } catch (const cudnn::RunError&) {
    }
  }
  const double least = *std::min_element(seconds.begin(), seconds.end());
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (seconds[i] < never && seconds[i] <= level * least &&
        (!best || ops[i]->workspace_bytes() < ops[*best]->workspace_bytes()))
      best = i;
  return best;
}

}  // namespace assay::ops
