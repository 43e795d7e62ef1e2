// The plan of a training step: its programs, the parameter layout, and the memory required.
#pragma once

#include "workloads/nn/builder.h"
#include "workloads/nn/memory_plan.h"
#include "workloads/nn/parameter_layout.h"
#include "workloads/parallel/collectives.h"

#include <array>
#include <memory>
#include <vector>

namespace assay::nn {

// The optimizer's pass over a part of the flat buffers, and the elements before it in each array.
struct Update {
  std::array<std::int64_t, array_kinds> at = {};
  std::unique_ptr<ops::Optimizer> optimizer;
  std::unique_ptr<ops::Elementwise> copy;  // rounds masters to copies; null if layers do not read copies

  std::int64_t in(Array array) const { return at[static_cast<std::size_t>(array)]; }
};

struct StepPlan {
  // Throws UsageError if the model cannot be built with these options (with the reason if the backend lacks an op), or
  // not divided as options.layout says.
  StepPlan(const Model& model, const StepOptions& options, const DeviceProfile& device,
           std::shared_ptr<ops::Backend> backend, int rank = 0);
  StepPlan(const StepPlan&) = delete;
  StepPlan& operator=(const StepPlan&) = delete;

  DeviceKind device;
  StepLayout layout;
  Program first;       // writes gradients
  Program next;        // adds to them; used if a step has several micro-batches, unless it is the same
  Program evaluation;  // empty without StepOptions::evaluation
  ParameterLayout parameters;
  std::vector<Update> updates;  // of this rank's weights: a single update, or one per bucket
  std::vector<std::unique_ptr<ops::Elementwise>> add_slice;  // if ranks divide gradients: to each bucket's slice
  std::unique_ptr<ops::GradientNorm> norm;
  std::unique_ptr<ops::ScaleUpdate> update_scales;     // null if nothing is rounded to 8 bits
  std::unique_ptr<ops::ScaleUpdate> update_one_scale;  // for a history of length 1
  std::size_t arena_bytes = 0;                         // the larger of the largest program and the optimizer's scratch
  MemoryPlan memory;

  std::size_t input_bytes() const {  // inputs of all micro-batches of a step
    return layout.input_bytes * static_cast<std::size_t>(layout.options.accumulate);
  }
  bool divides() const { return layout.options.layout.divides(); }
  bool accumulates() const { return layout.options.accumulate > 1; }
  const Program& program(std::int64_t micro_batch) const {
    return micro_batch == 0 || next.instructions.empty() ? first : next;
  }
  bool gathers_weights() const { return layout.options.layout.divides(3); }  // in programs
  DType type(Array array) const;
  std::size_t bytes(Array array) const { return offset(array, parameters.size(array)); }
  // Bytes of that many elements.
  std::size_t offset(Array array, std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * size_of(type(array));
  }
  // The calls between ranks of a step, without sums of single values.
  std::vector<parallel::Collective> collectives() const;
  // `memory` if dp ranks shared the data, and divided the same of it.
  MemoryPlan memory_on(std::int64_t dp) const;
  // Per tensor that is rounded to 8 bits: magnitude, scale, its inverse, the type's maximum, history.
  std::size_t scale_floats() const {
    return layout.rounded.size() * (4 + static_cast<std::size_t>(fp8_scaling.history));
  }
  int moments() const { return layout.options.optimizer == ops::OptimizerKind::adamw ? 2 : 1; }

 private:
  void build(const Model& model, const Variant& variant, Program& program);
  ParameterLayout laid_out(const parallel::Layout& ranks, int rank) const;
  void place_parameters(int rank);
  void make_updates(int rank);
  void make_norm(int rank);
  void make_scales();
  void count_memory();
};

// Planned bytes of a step on each rank, without a device. Ops only have sizes; their scratch is unknown. Throws
// UsageError as StepPlan does.
MemoryPlan plan_memory(const Model& model, const StepOptions& options, const DeviceProfile& device = {});

}  // namespace assay::nn
