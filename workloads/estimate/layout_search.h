// The layouts and micro-batches with which hardware holds a model.
#pragma once

#include "workloads/estimate/memory_estimate.h"
#include "workloads/parallel/held.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::estimate {

class LayoutSearch {
 public:
  // `sets` as in MemoryEstimator::set(), without micro-batch and layout; `gpus`: the numbers to plan for. Throws
  // UsageError.
  LayoutSearch(std::string model, std::vector<std::string> sets, const std::vector<std::int64_t>& gpus);

  // Among layouts that send equally much, the one with the largest micro-batch, a power of two; among those, the lowest
  // zero. Recomputes, or gathers weights (zero = 3), only if nothing fits without. The sheet must give its memory.
  parallel::Held on(const HardwareSheet& sheet, std::int64_t gpus);
  // The fewest GPUs, a power of two above `gpus`, that hold it; nothing if 1024 do not.
  std::optional<std::int64_t> fewest_above(const HardwareSheet& sheet, std::int64_t gpus);

  const MemoryEstimator& estimator() const { return estimator_; }
  // The step of one rank as requested.
  const training::Settings& settings() const { return settings_; }

 private:
  using Plans = std::map<std::pair<std::int64_t, int>, MemoryEstimate>;  // by dp and zero
  using Step = std::pair<std::string, std::int64_t>;                     // checkpointing and micro-batch

  const Plans& plans(const HardwareSheet& sheet, const Step& step);
  parallel::Held held(const MemoryEstimate& estimate, const HardwareSheet& sheet, bool fits) const;

  std::string model_;
  std::vector<std::string> sets_;
  std::vector<parallel::Layout> layouts_;
  MemoryEstimator estimator_;
  training::Settings settings_;
  std::map<std::pair<DeviceKind, std::int64_t>, MemoryEstimator> estimators_;  // by what a plan depends on
  std::map<std::pair<const MemoryEstimator*, Step>, Plans> plans_;
};

}  // namespace assay::estimate
