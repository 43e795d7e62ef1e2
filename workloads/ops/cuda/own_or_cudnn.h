// Ops that our own kernels always support and cuDNN may do faster: the first op of a descriptor tries both on random
// data. A plan must agree with our own kernel to be chosen.
#pragma once

#include "workloads/ops/cuda/known_choices.h"
#include "workloads/ops/cuda/trial.h"
#include "workloads/ops/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::ops {

// The winner of a trial.
struct OwnOrCudnn {
  std::shared_ptr<cudnn::Plan> plan = {};  // null: our own kernel
  std::string rejected = {};               // " (PLAN disagrees in y)", or nothing
  bool offered = true;                     // false: cuDNN has no plan
  bool tried = true;                       // false: no memory for a trial

  static constexpr const char *own = "own kernel", *none = "no plan of cuDNN";
  std::string name() const {
    if (!offered) return none;
    return tried ? (plan ? plan->name() : own) + rejected : std::string();
  }
};

// The op by the winner. cuDNN needs arrays aligned to 16 bytes; run() passes others to our own kernel.
template <typename Base>
class CudnnOp : public Base {
 public:
  CudnnOp(std::unique_ptr<Base> own, OwnOrCudnn choice)
      : own_(std::move(own)), plan_(std::move(choice.plan)), remark_(choice.tried ? choice.rejected : " (untried)") {}

  std::string implementation() const override { return "assay or cuDNN"; }
  std::string choice() const override { return (plan_ ? plan_->name() : own_->implementation()) + remark_; }
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

 private:
  std::string remark_;
};

// A trial's arrays, which include the op's outputs, and one run on them.
template <typename Op>
struct OwnOrCudnnTrial {
  std::shared_ptr<TrialArrays> arrays;
  TryOut<Op> run;
};

// The fastest of the ops whose results agree with the first one's, which uses our own kernel.
template <typename Op>
OwnOrCudnn try_all(Device& device, Stream& stream, std::vector<OwnOrCudnn> choices,
                   std::vector<std::unique_ptr<Op>> ops, const OwnOrCudnnTrial<Op>& trial) {
  const auto run = [&](Op& op) { return [&] { trial.run(op); }; };
  trial.arrays->expect(run(*ops[0]));
  std::string rejected;
  for (std::size_t i = 1; i < ops.size();) {
    std::string output;
    try {
      output = trial.arrays->disagreement(run(*ops[i]));
    } catch (const cudnn::RunError&) {  // nor is it timed
    }
    if (output.empty()) {
      ++i;
      continue;
    }
    rejected += fmt::format(" ({} disagrees in {})", choices[i].plan->name(), output);
    choices.erase(choices.begin() + static_cast<std::ptrdiff_t>(i));
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
  }
  OwnOrCudnn best = std::move(choices[fastest(device, stream, ops, trial.run).value_or(0)]);
  best.rejected = std::move(rejected);
  return best;
}

// `own()` makes the op by our own kernels, `by_choice(choice)` the one that was tried; `trial(stream, workspace bytes)`
// makes its OwnOrCudnnTrial. Our own kernel also does the op if cuDNN has no plan or cannot run it, or if the device
// has no memory for a trial. Few plans are tried: cuDNN compiles each when it is built.
template <typename Op, typename Graph, typename Own, typename ByChoice, typename Trial>
std::unique_ptr<Op> own_or_cudnn(Device& device, const Graph& graph,
                                 cudnn::Plans (*plans_of)(const Graph&, const cudnn::Limits&), const Own& own,
                                 const ByChoice& by_choice, const Trial& trial) {
  static auto& known = *new KnownChoices<Graph, OwnOrCudnn>;
  const auto named = [&](const std::string& name) -> std::optional<OwnOrCudnn> {
    if (name == OwnOrCudnn::none) return OwnOrCudnn{.offered = false};  // nor is it compiled again to see that it fails
    const std::size_t end = std::min(name.find(" ("), name.size());
    OwnOrCudnn choice{.rejected = name.substr(end)};
    if (name.starts_with(OwnOrCudnn::own)) return choice;
    const auto plans = plans_of(graph, {.max_plans = 1, .name = name.substr(0, end)}).plans;
    if (plans.empty()) return std::nullopt;
    choice.plan = plans[0];
    return choice;
  };
  const auto search = [&]() -> std::optional<OwnOrCudnn> {
    std::vector<OwnOrCudnn> choices(1);
    for (auto& plan : plans_of(graph, {.max_plans = 2}).plans) choices.push_back({.plan = std::move(plan)});
    if (choices.size() == 1) return OwnOrCudnn{.offered = false};
    std::vector<std::unique_ptr<Op>> ops;
    std::size_t workspace = 1;
    for (const OwnOrCudnn& choice : choices) {
      ops.push_back(by_choice(choice));
      workspace = std::max(workspace, ops.back()->workspace_bytes());
    }
    const auto stream = device.make_stream();
    try {
      return try_all(device, *stream, std::move(choices), std::move(ops), trial(*stream, workspace));
    } catch (const Error&) {
      if (device.lost()) throw;
      return OwnOrCudnn{.tried = false};
    }
  };
  const OwnOrCudnn choice = *known.find(device, graph, named, search);
  if (!choice.offered) return own();
  return by_choice(choice);
}

}  // namespace assay::ops
