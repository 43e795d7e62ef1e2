#include "workloads/nn/step_plan.h"

#include "harness/core/error.h"
#include "harness/core/units.h"
#include "workloads/nn/planning_backend.h"
#include "workloads/nn/step_block.h"
#include "workloads/parallel/shards.h"

#include <algorithm>

namespace assay::nn {

std::string MemoryPlan::text() const {
  const auto size = [](std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  return fmt::format("{}: weights {}, gradients {}, optimizer {}, activations {}, workspace {}{}", size(total()),
                     size(weights), size(gradients), size(optimizer), size(activations), size(workspace),
                     communication > 0 ? ", communication " + size(communication) : "");
}

namespace {

bool needs_copies(StepLayout& layout) {
  const Precision& precision = layout.options.precision;
  if (size_of(precision.param) == size_of(precision.master)) return false;
  ops::MatmulDesc desc{.m = 64, .n = 64, .k = 64, .transpose_b = true, .form = ops::WeightForm::packed};
  desc.a = desc.b = precision.product;
  desc.out = precision.compute;
  desc.pack_from = precision.master;
  return !layout.ops.backend().make(desc);
}

}  // namespace

StepPlan::StepPlan(const Model& model, const StepOptions& requested, const DeviceProfile& profile,
                   std::shared_ptr<ops::Backend> backend)
    : device(profile.kind), layout(for_device(requested, profile), model.parameters(), std::move(backend)) {
  const StepOptions& options = layout.options;
  if (options.accumulate < 1) throw UsageError("accumulate must be at least 1");
  if (options.batch.samples < 1) throw UsageError("micro_batch must be at least 1");
  if (options.precision.fp8_linear)
    if (const auto made = layout.ops.backend().quantize({.rows = 16, .columns = 16}); !made)
      throw UsageError("precision fp8 multiplies in 8 bits: " + made.reason());
  layout.copies_weights = needs_copies(layout);
  build(model, {.training = true, .packing = accumulates() ? Packing::pack : Packing::transient}, first);
  if (accumulates()) build(model, {.training = true, .accumulate = true, .packing = Packing::reuse}, next);
  if (options.evaluation) build(model, {.training = false}, evaluation);
  const auto element = static_cast<std::int64_t>(size_of(options.precision.grad));
  parameters =
      lay_out(layout.specs, (accumulates() ? next : first).gradient_ready, options.bucket_bytes / element, layout.room);
  for (Program* program : {&first, &next, &evaluation})
    for (TensorInfo& info : program->tensors)
      if (info.region == Region::weights || info.region == Region::copies || info.region == Region::gradients)
        info.offset = static_cast<std::size_t>(parameters.begin[info.parameter]) * size_of(info.dtype);
  make_optimizer();
  if (options.precision.fp8_linear) make_scales();
  count_memory();
}

void StepPlan::build(const Model& model, const Variant& variant, Program& program) {
  Builder builder(layout, variant, program);
  model.build(builder);
  builder.finish();
}

void StepPlan::make_optimizer() {
  const StepOptions& options = layout.options;
  ops::OptimizerDesc desc{.kind = options.optimizer, .count = parameters.count, .segments = {}};
  if (parameters.decayed > 0) desc.segments.push_back({0, parameters.decayed, options.weight_decay});
  if (parameters.decayed < parameters.count) desc.segments.push_back({parameters.decayed, parameters.count, 0});
  desc.beta1 = options.beta1;
  desc.beta2 = options.beta2;
  desc.epsilon = options.epsilon;
  desc.momentum = options.momentum;
  desc.master = desc.parameter = options.precision.master;
  if (layout.copies_weights) desc.parameter = options.precision.param;
  desc.gradient = options.precision.grad;
  auto made = layout.ops.backend().optimizer(desc);
  if (!made) throw UsageError("optimizer: " + made.reason());
  optimizer = made.take();
  auto made_norm = layout.ops.backend().gradient_norm({.count = parameters.count, .gradient = options.precision.grad});
  if (!made_norm) throw UsageError("gradient norm: " + made_norm.reason());
  norm = made_norm.take();
  if (!layout.copies_weights) return;
  const Precision& precision = options.precision;
  const ops::ElementwiseDesc cast{.count = parameters.count, .in = precision.master, .out = precision.param};
  auto made_copy = layout.ops.backend().elementwise(cast);
  if (!made_copy) throw UsageError("weights: " + made_copy.reason());
  copy_weights = made_copy.take();
}

void StepPlan::make_scales() {
  if (layout.rounded.empty()) throw UsageError("precision fp8: no layer of this model multiplies in 8 bits; use bf16");
  const auto make = [&](std::int64_t tensors, std::int64_t length) {
    auto made = layout.ops.backend().scale_update({.tensors = tensors, .length = length, .margin = fp8_scaling.margin});
    if (!made) throw UsageError("scales of fp8: " + made.reason());
    return made.take();
  };
  update_scales = make(static_cast<std::int64_t>(layout.rounded.size()), fp8_scaling.history);
  update_one_scale = make(1, 1);
}

std::size_t StepPlan::master_bytes() const {
  return static_cast<std::size_t>(parameters.count) * size_of(layout.options.precision.master);
}

std::size_t StepPlan::copy_bytes() const {
  if (!layout.copies_weights) return 0;
  return static_cast<std::size_t>(parameters.count) * size_of(layout.options.precision.param);
}

std::size_t StepPlan::gradient_bytes() const {
  return static_cast<std::size_t>(parameters.count) * size_of(layout.options.precision.grad);
}

void StepPlan::count_memory() {
  const Program* largest = &first;
  for (const Program* program : {&next, &evaluation})
    if (program->arena_bytes > largest->arena_bytes) largest = program;
  const std::size_t scratch = std::max(optimizer->workspace_bytes(), norm->workspace_bytes());
  arena_bytes = std::max(largest->arena_bytes, scratch);
  memory.weights = master_bytes() + copy_bytes() + layout.running_bytes + layout.constant_bytes + layout.packed_bytes +
                   scale_floats() * sizeof(float) + largest->packed_at_peak;
  memory.gradients = gradient_bytes();
  memory.optimizer = static_cast<std::uint64_t>(moments()) * master_bytes();
  const std::size_t elsewhere = largest->workspace_at_peak + largest->packed_at_peak;
  // A device with its own memory also holds the next batch.
  const std::size_t batches = device == DeviceKind::cpu ? 1 : 2;
  memory.activations = (largest->arena_bytes - elsewhere) + batches * input_bytes();
  memory.workspace = largest->workspace_at_peak + (arena_bytes - largest->arena_bytes) + sizeof(StepBlock);
}

namespace {

// A parameter's block of the model: "block.3" of "block.3.norm1.weight", "head" of "head.weight".
std::string_view block_of(std::string_view name) {
  std::size_t end = name.find('.');
  for (std::size_t begin = end; begin != std::string_view::npos;) {
    const std::size_t next = name.find('.', begin + 1);
    const std::string_view part = name.substr(begin + 1, next - begin - 1);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos) end = next;
    begin = next;
  }
  return name.substr(0, end);
}

std::vector<std::int64_t> block_elements(const StepLayout& layout) {
  std::vector<std::int64_t> elements;
  std::string_view block;
  for (std::size_t i = 0; i < layout.specs.size(); ++i) {
    const ParameterSpec& spec = layout.specs[i];
    if (elements.empty() || block_of(spec.name) != block) elements.push_back(0);
    block = block_of(spec.name);
    constexpr std::int64_t line = parallel::slice_alignment;
    elements.back() += (spec.count() + layout.room[i] + line - 1) / line * line;
  }
  return elements;
}

parallel::StateTypes state_types(const StepPlan& plan) {
  const Precision& precision = plan.layout.options.precision;
  const auto bytes = [](DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); };
  return {.parameter = bytes(precision.param),
          .gradient = bytes(precision.grad),
          .master = bytes(precision.master),
          .moments = plan.moments()};
}

// Replaces what each rank holds alone by its part of what the ranks divide.
void divide(const StepPlan& plan, const parallel::Layout& layout, MemoryPlan& memory) {
  if (plan.layout.options.precision.fp8_linear)
    throw UsageError(fmt::format(
        "zero={}: ranks do not divide a step with 8-bit products; use zero=0 or precision=bf16", layout.zero));
  const parallel::StateBytes state = parallel::state_bytes(block_elements(plan.layout), state_types(plan), layout);
  memory.weights += state.weights - plan.master_bytes() - plan.copy_bytes();
  memory.gradients = state.gradients;
  memory.optimizer = state.optimizer;
  memory.communication = state.communication;
}

}  // namespace

MemoryPlan memory_on(const StepPlan& plan, const parallel::Layout& layout) {
  if (const auto problem = parallel::problem_of(layout)) throw UsageError(*problem);
  MemoryPlan memory = plan.memory;
  if (layout.zero > 0) divide(plan, layout, memory);
  return memory;
}

std::vector<parallel::Collective> collectives_of(const StepPlan& plan, const parallel::Layout& layout) {
  std::vector<std::int64_t> buckets;
  for (const Bucket& bucket : plan.parameters.buckets) buckets.push_back(bucket.end - bucket.begin);
  return parallel::collectives_of(buckets, block_elements(plan.layout), state_types(plan), layout,
                                  plan.layout.options.accumulate);
}

MemoryPlan plan_memory(const Model& model, const StepOptions& options, const DeviceProfile& device,
                       const parallel::Layout& layout) {
  return memory_on(StepPlan(model, options, device, make_planning_backend(device.kind)), layout);
}

}  // namespace assay::nn
