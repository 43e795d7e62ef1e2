// Ops that our own kernels always support and cuDNN may do faster: the first op of a descriptor tries both on random
// data.
#pragma once

#include "workloads/ops/cuda/round_up.h"
#include "workloads/ops/cuda/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace assay::ops {

// The winner of a trial: a plan, or without one our own kernel. cuDNN needs arrays aligned to 16 bytes; run() passes
// others to our own kernel.
template <typename Base>
class CudnnOp : public Base {
 public:
  CudnnOp(std::unique_ptr<Base> own, std::shared_ptr<cudnn::Plan> plan)
      : own_(std::move(own)), plan_(std::move(plan)) {}

  std::string implementation() const override { return "assay or cuDNN"; }
  std::string choice() const override { return plan_ ? plan_->name() : own_->implementation(); }
  std::string isa() const override { return own_->isa(); }
  std::size_t workspace_bytes() const override {
    return std::max(own_->workspace_bytes(), plan_ ? plan_bytes() + scratch_bytes() : 0);
  }

 protected:
  std::size_t plan_bytes() const { return aligned_size(plan_->workspace_bytes()); }
  // In addition to the plan's workspace, behind it.
  virtual std::size_t scratch_bytes() const { return 0; }

  bool plan_accepts(std::initializer_list<const void*> arrays) const {
    return plan_ && std::all_of(arrays.begin(), arrays.end(),
                                [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; });
  }

  std::unique_ptr<Base> own_;
  std::shared_ptr<cudnn::Plan> plan_;
};

// `own()` makes the op by our own kernels, `by_plan(plan)` the one that was tried; `trial(stream, workspace bytes)`
// makes its TryOut and throws Error if the device is out of memory. Our own kernel also does the op if cuDNN has no
// plan or cannot run it. Few plans are tried: cuDNN compiles each when it is built.
template <typename Op, typename Graph, typename Own, typename ByPlan, typename Trial>
std::unique_ptr<Op> own_or_cudnn(Device& device, const Graph& graph,
                                 cudnn::Plans (*plans_of)(const Graph&, const cudnn::Limits&), const Own& own,
                                 const ByPlan& by_plan, const Trial& trial) {
  struct Choice {
    bool tried = false;
    std::shared_ptr<cudnn::Plan> plan;  // null: the own kernel
  };
  static auto& known = *new KnownChoices<Graph, Choice>;
  const auto op_by = [&](const Choice& choice) -> std::unique_ptr<Op> {
    return choice.tried ? by_plan(choice.plan) : own();
  };
  if (const auto choice = known.find(graph)) return op_by(*choice);
  std::vector<Choice> choices;
  for (auto& plan : plans_of(graph, {.max_plans = 2}).plans) choices.push_back({true, std::move(plan)});
  choices.insert(choices.begin(), {!choices.empty(), nullptr});
  std::vector<std::unique_ptr<Op>> ops;
  std::size_t workspace = 1;
  for (const Choice& choice : choices) {
    ops.push_back(op_by(choice));
    workspace = std::max(workspace, ops.back()->workspace_bytes());
  }
  std::size_t best = 0;
  if (ops.size() > 1) {
    const auto stream = device.make_stream();
    TryOut<Op> run;
    try {
      run = trial(*stream, workspace);
    } catch (const Error&) {
    }
    if (run) best = fastest(device, *stream, ops, run).value_or(0);
    stream->synchronize();  // before the trial's arrays are freed
  }
  known.remember(graph, choices[best]);
  return std::move(ops[best]);
}

}  // namespace assay::ops
