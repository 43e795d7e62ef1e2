#include "workloads/nn/step_plan.h"

#include "harness/core/error.h"
#include "harness/core/units.h"
#include "workloads/nn/planning_backend.h"
#include "workloads/nn/program_windows.h"
#include "workloads/nn/step_block.h"

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
  return !layout.ops.backend().make<ops::Matmul>(desc);
}

}  // namespace

StepPlan::StepPlan(const Model& model, const StepOptions& requested, const DeviceProfile& profile,
                   std::shared_ptr<ops::Backend> backend, int rank)
    : device(profile.kind), layout(for_device(requested, profile), model.parameters(), std::move(backend)) {
  const StepOptions& options = layout.options;
  if (const auto problem = parallel::problem_of(options.layout)) throw UsageError(*problem);
  if (options.accumulate < 1) throw UsageError("accumulate must be at least 1");
  if (options.batch.samples < 1) throw UsageError("micro_batch must be at least 1");
  if (options.precision.fp8_linear) {
    if (options.layout.zero > 0)
      throw UsageError(
          fmt::format("zero={}: ranks do not divide a step with 8-bit products; use zero=0 or "
                      "precision=bf16",
                      options.layout.zero));
    if (const auto made = layout.ops.backend().make<ops::Quantize>({.rows = 16, .columns = 16}); !made)
      throw UsageError("precision fp8 multiplies in 8 bits: " + made.reason());
  }
  layout.copies_weights = needs_copies(layout);
  layout.packs_copies = options.layout.divides() && !layout.copies_weights &&
                        size_of(options.precision.compute) != size_of(options.precision.master);
  // Packed forms that stay are whole weights.
  const bool keeps = accumulates() && !gathers_weights();
  build(model, {.training = true, .packing = keeps ? Packing::pack : Packing::transient}, first);
  if (keeps) build(model, {.training = true, .accumulate = true, .packing = Packing::reuse}, next);
  if (options.evaluation) build(model, {.training = false}, evaluation);
  place_parameters(rank);
  for (Program* program : {&first, &next, &evaluation}) place_in_arena(*program);
  make_updates(rank);
  make_norm(rank);
  if (options.precision.fp8_linear) make_scales();
  count_memory();
}

void StepPlan::build(const Model& model, const Variant& variant, Program& program) {
  Builder builder(layout, variant, program);
  model.build(builder);
  builder.finish();
}

DType StepPlan::type(Array array) const {
  const Precision& precision = layout.options.precision;
  switch (array) {
    case Array::copies: return precision.param;
    case Array::gradients: return precision.grad;
    default: return precision.master;
  }
}

namespace {

std::vector<ReadWhole> what_layers_read(std::initializer_list<const Program*> programs,
                                        const ParameterLayout& parameters) {
  std::vector<ReadWhole> read(parameters.buckets.size(), ReadWhole{false, false});
  for (const Program* program : programs)
    for (const Instruction& instruction : program->instructions)
      for (const Tensor tensor : instruction.reads) {
        const TensorInfo& info = program->tensors[static_cast<std::size_t>(tensor.id)];
        ReadWhole& of_bucket = read[parameters.bucket[info.parameter]];
        if (info.region == Region::weights) of_bucket.masters = true;
        if (info.region == Region::copies) of_bucket.copies = true;
      }
  return read;
}

}  // namespace

ParameterLayout StepPlan::laid_out(const parallel::Layout& ranks, int rank) const {
  const StepOptions& options = layout.options;
  const Cut cut{options.bucket_bytes / static_cast<std::int64_t>(size_of(options.precision.grad)), ranks};
  ParameterLayout made = lay_out(layout.specs, program(accumulates() ? 1 : 0).gradient_ready, cut, layout.room);
  if (!layout.copies_weights) made.elements[static_cast<std::size_t>(Array::copies)] = 0;
  divide(made, ranks, rank, what_layers_read({&first, &next, &evaluation}, made));
  return made;
}

void StepPlan::place_parameters(int rank) {
  parameters = laid_out(layout.options.layout, rank);
  for (Program* each : {&first, &next, &evaluation}) {
    for (TensorInfo& info : each->tensors)
      if (const auto array = array_of(info.region))
        info.offset = offset(*array, parameters.position(*array, info.parameter));
    add_windows(*each, *this);
  }
}

void StepPlan::make_updates(int rank) {
  const StepOptions& options = layout.options;
  const auto add = [&](const Update& at, std::int64_t count, const std::vector<ops::DecaySegment>& segments,
                       bool copies) {
    Update update{at.at, nullptr, nullptr};
    ops::OptimizerDesc desc{.kind = options.optimizer, .count = count, .segments = segments};
    desc.beta1 = options.beta1;
    desc.beta2 = options.beta2;
    desc.epsilon = options.epsilon;
    desc.momentum = options.momentum;
    desc.master = desc.parameter = options.precision.master;
    if (copies) desc.parameter = options.precision.param;
    desc.gradient = options.precision.grad;
    auto made = layout.ops.backend().make<ops::Optimizer>(desc);
    if (!made) throw UsageError("optimizer: " + made.reason());
    update.optimizer = made.take();
    if (copies) {
      const ops::ElementwiseDesc cast{.count = count, .in = options.precision.master, .out = options.precision.param};
      auto made_copy = layout.ops.backend().make<ops::Elementwise>(cast);
      if (!made_copy) throw UsageError("weights: " + made_copy.reason());
      update.copy = made_copy.take();
    }
    updates.push_back(std::move(update));
  };
  if (!options.layout.divides()) {
    std::vector<ops::DecaySegment> segments;
    if (parameters.decayed > 0) segments.push_back({0, parameters.decayed, options.weight_decay});
    if (parameters.decayed < parameters.count) segments.push_back({parameters.decayed, parameters.count, 0});
    return add({}, parameters.count, segments, layout.copies_weights);
  }
  for (const Bucket& bucket : parameters.buckets) {
    Update at;
    for (std::size_t a = 0; a < array_kinds; ++a)
      at.at[a] = bucket.held[a].at + bucket.own(rank) - bucket.held[a].begin;
    add(at, bucket.slice, {{0, bucket.slice, bucket.decay ? options.weight_decay : 0}},
        bucket.in(Array::copies).count() > 0);
    if (options.layout.zero < 2) continue;
    const DType grad = options.precision.grad;
    auto made = layout.ops.backend().make<ops::Elementwise>(
        {.kind = ops::ElementwiseKind::add, .count = bucket.slice, .in = grad, .out = grad});
    if (!made) throw UsageError("sums of gradients: " + made.reason());
    add_slice.push_back(made.take());
  }
}

// The norm adds up the same sums in the same order whatever ranks divide.
void StepPlan::make_norm(int rank) {
  const parallel::Layout& ranks = layout.options.layout;
  ops::GradientNormDesc desc{.count = parameters.size(Array::gradients), .gradient = layout.options.precision.grad};
  if (ranks.dp > 1) {
    const std::vector<std::size_t> ready(layout.specs.size(), 1);
    const ParameterLayout divided = lay_out(layout.specs, ready, {.layout = {.dp = ranks.dp, .zero = 1}}, layout.room);
    for (const RankRange& range : ranges_by_rank(divided, layout.specs, ranks.dp)) {
      const bool held = !ranks.divides() || range.rank == rank;
      const std::int64_t at = parameters.position(Array::gradients, range.parameter, range.first);
      desc.pieces.push_back({held ? at : 0, range.count, held});
    }
  }
  auto made = layout.ops.backend().make<ops::GradientNorm>(desc);
  if (!made) throw UsageError("gradient norm: " + made.reason());
  norm = made.take();
}

void StepPlan::make_scales() {
  if (layout.rounded.empty()) throw UsageError("precision fp8: no layer of this model multiplies in 8 bits; use bf16");
  const auto make = [&](std::int64_t tensors, std::int64_t length) {
    auto made = layout.ops.backend().make<ops::ScaleUpdate>(
        {.tensors = tensors, .length = length, .margin = fp8_scaling.margin});
    if (!made) throw UsageError("scales of fp8: " + made.reason());
    return made.take();
  };
  update_scales = make(static_cast<std::int64_t>(layout.rounded.size()), fp8_scaling.history);
  update_one_scale = make(1, 1);
}

std::vector<parallel::Collective> StepPlan::collectives() const {
  using parallel::CollectiveKind;
  const parallel::Layout& ranks = layout.options.layout;
  std::vector<parallel::Collective> calls;
  if (ranks.dp == 1) return calls;
  const auto add = [&](CollectiveKind kind, Array array, const Bucket& bucket, std::int64_t count) {
    calls.push_back({kind, bucket.end - bucket.begin, type(array), count});
  };
  for (const Bucket& bucket : parameters.buckets) {
    const bool each_micro_batch = bucket.divided() && ranks.zero > 1;
    add(bucket.divided() ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce, Array::gradients, bucket,
        each_micro_batch ? layout.options.accumulate : 1);
    for (const Array array : {Array::masters, Array::copies})
      if (bucket.divided() && bucket.whole(array)) add(CollectiveKind::all_gather, array, bucket, 1);
  }
  for (std::int64_t m = 0; m < layout.options.accumulate; ++m)
    for (const Window& window : program(m).gathers)
      add(CollectiveKind::all_gather, window.array, parameters.buckets[window.bucket], 1);
  return calls;
}

void StepPlan::count_memory() {
  const Program* largest = &first;
  for (const Program* program : {&next, &evaluation})
    if (program->arena_bytes > largest->arena_bytes) largest = program;
  std::size_t scratch = norm->workspace_bytes();
  for (const Update& update : updates) scratch = std::max(scratch, update.optimizer->workspace_bytes());
  arena_bytes = std::max(largest->arena_bytes, scratch);
  memory.weights = bytes(Array::masters) + bytes(Array::copies) + layout.running_bytes + layout.constant_bytes +
                   layout.packed_bytes + scale_floats() * sizeof(float) + largest->packed_at_peak;
  memory.gradients = bytes(Array::gradients);
  memory.optimizer = static_cast<std::uint64_t>(moments()) * bytes(Array::moments);
  memory.communication = largest->windows_at_peak;
  const std::size_t elsewhere = largest->workspace_at_peak + largest->packed_at_peak + largest->windows_at_peak;
  // A device with its own memory also holds the next batch.
  const std::size_t batches = device == DeviceKind::cpu ? 1 : 2;
  memory.activations = (largest->arena_bytes - elsewhere) + batches * input_bytes();
  memory.workspace = largest->workspace_at_peak + (arena_bytes - largest->arena_bytes) + sizeof(StepBlock);
}

MemoryPlan StepPlan::memory_on(std::int64_t dp) const {
  parallel::Layout ranks = layout.options.layout;
  ranks.dp = dp;
  ASSAY_CHECK(ranks.divides() == divides(), "memory_on: {} ranks divide what {} do not, or the reverse", dp,
              layout.options.layout.dp);
  const ParameterLayout on_these = laid_out(ranks, 0);
  MemoryPlan all = memory;
  const auto change = [&](Array array) { return offset(array, on_these.size(array)) - bytes(array); };
  all.weights += change(Array::masters) + change(Array::copies);
  all.gradients += change(Array::gradients);
  all.optimizer += static_cast<std::uint64_t>(moments()) * change(Array::moments);
  return all;
}

MemoryPlan plan_memory(const Model& model, const StepOptions& options, const DeviceProfile& device) {
  return StepPlan(model, options, device, make_planning_backend(device.kind)).memory;
}

}  // namespace assay::nn
