// The plan of a training step: its programs, the parameter layout, and the memory required.
#pragma once

#include "workloads/nn/builder.h"
#include "workloads/nn/memory_plan.h"
#include "workloads/nn/parameter_layout.h"
#include "workloads/parallel/collectives.h"

#include <memory>
#include <vector>

namespace assay::nn {

struct StepPlan {
  // Throws UsageError if the model cannot be built with these options (with the reason if the backend lacks an op).
  StepPlan(const Model& model, const StepOptions& options, const DeviceProfile& device,
           std::shared_ptr<ops::Backend> backend);
  StepPlan(const StepPlan&) = delete;
  StepPlan& operator=(const StepPlan&) = delete;

  DeviceKind device;
  StepLayout layout;
  Program first;       // writes gradients
  Program next;        // adds to them; used if a step has several micro-batches
  Program evaluation;  // empty without StepOptions::evaluation
  ParameterLayout parameters;
  std::unique_ptr<ops::Optimizer> optimizer;
  std::unique_ptr<ops::GradientNorm> norm;
  std::unique_ptr<ops::Elementwise> copy_weights;      // null if layers do not read copies
  std::unique_ptr<ops::ScaleUpdate> update_scales;     // null if nothing is rounded to 8 bits
  std::unique_ptr<ops::ScaleUpdate> update_one_scale;  // of a history of length 1
  std::size_t arena_bytes = 0;                         // the larger of the largest program and the optimizer's scratch
  MemoryPlan memory;

  std::size_t input_bytes() const {  // of all micro-batches of a step
    return layout.input_bytes * static_cast<std::size_t>(layout.options.accumulate);
  }
  bool accumulates() const { return layout.options.accumulate > 1; }
  Program& program(std::int64_t micro_batch) { return micro_batch == 0 ? first : next; }
  std::size_t master_bytes() const;
  std::size_t copy_bytes() const;
  std::size_t gradient_bytes() const;
  // Per tensor that is rounded to 8 bits: magnitude, scale, its inverse, the type's maximum, history.
  std::size_t scale_floats() const {
    return layout.rounded.size() * (4 + static_cast<std::size_t>(fp8_scaling.history));
  }
  int moments() const { return layout.options.optimizer == ops::OptimizerKind::adamw ? 2 : 1; }

 private:
  void build(const Model& model, const Variant& variant, Program& program);
  void make_optimizer();
  void make_scales();
  void count_memory();
};

// Planned bytes of the step on each rank of a layout. Throws UsageError for a layout that has a problem, or divides a
// step with 8-bit products.
MemoryPlan memory_on(const StepPlan& plan, const parallel::Layout& layout);
// The collective calls of the step in that layout.
std::vector<parallel::Collective> collectives_of(const StepPlan& plan, const parallel::Layout& layout);

// memory_on() of a step that is planned without a device: ops only have sizes; their scratch is unknown.
MemoryPlan plan_memory(const Model& model, const StepOptions& options, const DeviceProfile& device = {},
                       const parallel::Layout& layout = {});

}  // namespace assay::nn
