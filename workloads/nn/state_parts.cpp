#include "workloads/nn/state_parts.h"

namespace assay::nn {

namespace {

// Finds the elements of `extent` that the rank holds in the array at `base`.
void add_parts(std::vector<StatePart>& parts, const StepPlan& plan, const char* prefix, Array array, std::byte* base,
               Array extent) {
  for (std::size_t i = 0; i < plan.layout.specs.size(); ++i) {
    const ParameterSpec& spec = plan.layout.specs[i];
    const Range range = plan.parameters.held(extent, i, spec.count());
    if (range.count == 0) continue;
    parts.push_back({.name = prefix + spec.name,
                     .dtype = plan.type(array),
                     .shape = spec.shape,
                     .data = base + plan.offset(array, plan.parameters.position(array, i, range.first)),
                     .bytes = plan.offset(array, range.count),
                     .first = range.first});
  }
}

}  // namespace

std::vector<StatePart> model_state(const StepPlan& plan, const StepMemory& memory) {
  std::vector<StatePart> parts;
  add_parts(parts, plan, "weights/", Array::masters, memory.weights(), Array::masters);
  for (int m = 0; m < plan.moments(); ++m)
    add_parts(parts, plan, m == 0 ? "moment1/" : "moment2/", Array::moments, memory.moment(m), Array::moments);
  for (const RunningStatistic& entry : plan.layout.running)
    parts.push_back({entry.name, entry.dtype, {entry.elements}, memory.running() + entry.offset, entry.bytes()});
  return parts;
}

std::vector<StatePart> reduced_gradients(const StepPlan& plan, const StepMemory& memory) {
  std::vector<StatePart> parts;
  add_parts(parts, plan, "gradients/", Array::gradients, memory.gradients(), Array::moments);
  return parts;
}

}  // namespace assay::nn
