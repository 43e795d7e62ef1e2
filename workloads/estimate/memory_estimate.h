// The memory that a step of a model takes on each rank of a layout, planned without running it.
#pragma once

#include "harness/machine/hardware.h"
#include "workloads/estimate/models.h"
#include "workloads/nn/step_plan.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay::estimate {

struct MemoryEstimate {
  training::Settings settings;
  parallel::Layout layout;
  nn::MemoryPlan memory;        // of each rank; all hold slices of one size
  std::uint64_t allowance = 0;  // an upper bound of what a GPU's libraries keep there

  std::uint64_t total() const { return memory.total() + allowance; }
};

// A step that fits where the requested one does not.
struct Alternative {
  std::string set;  // "micro_batch=2,checkpointing=full"
  MemoryEstimate estimate;
};

// A parameter and another value of it.
using Change = std::pair<std::string, ParamValue>;

// The device of a sheet.
nn::DeviceProfile profile_of(const HardwareSheet& sheet);

class MemoryEstimator {
 public:
  // A model of configs/models by name, or a file, in bf16; on a CPU, or on a GPU if only those have the precision.
  // Throws UsageError for a file that does not describe a model.
  explicit MemoryEstimator(const std::string& model);

  // The device that must hold it, instead; set() checks that it has the precision.
  void set_hardware(HardwareSheet sheet) { hardware_ = std::move(sheet); }
  // Each text is name=value,name=value,... Throws UsageError for what does not go together, with the nearest that does.
  void set(const std::vector<std::string>& texts);
  MemoryEstimate estimate() const;
  // The step of one rank as requested.
  training::Settings settings() const { return settings_of(params_); }
  // The request with these changes on each of the layouts.
  std::vector<MemoryEstimate> on(const std::vector<Change>& changes, std::span<const parallel::Layout> layouts) const;

  const std::string& name() const { return loaded_.model->name(); }
  const LoadedModel& loaded() const { return loaded_; }
  const std::optional<HardwareSheet>& hardware() const { return hardware_; }
  DeviceKind device() const { return profile().kind; }
  // Whether it fits the hardware's memory; nothing without hardware, or if its sheet gives no memory.
  std::optional<bool> fits(const MemoryEstimate& estimate) const;
  // Smaller micro-batches, recomputation, and dividing state among more ranks: each alone; if only more ranks help,
  // also the fewest of them, as LayoutSearch finds them.
  std::vector<Alternative> alternatives() const;

 private:
  nn::DeviceProfile profile() const;
  std::string precision() const { return params_.text("precision"); }
  void check_precision() const;
  void check_size(const training::Settings& settings) const;
  Params params_with(const std::vector<Change>& changes) const;
  training::Settings settings_of(const Params& params) const;
  nn::StepPlan plan_of(const training::Settings& settings, const parallel::Layout& layout) const;
  MemoryEstimate estimate_of(const training::Settings& settings, const parallel::Layout& layout,
                             const nn::MemoryPlan& memory) const;
  MemoryEstimate with(const std::vector<Change>& changes) const;
  // The request with these changes, if that fits.
  std::optional<Alternative> fitting(const std::vector<Change>& changes) const;
  std::optional<Alternative> with_smaller_batch(std::vector<Change> changes) const;
  std::optional<Alternative> with_more_ranks(const std::vector<Change>& changes) const;

  LoadedModel loaded_;
  Schema schema_;  // what can be set
  Params params_;  // of the family's cases, and of the layout
  std::optional<HardwareSheet> hardware_;
};

}  // namespace assay::estimate
