#include "workloads/planning/torch.h"

#include "harness/core/text.h"
#include "harness/core/words.h"
#include "workloads/planning/allocator.h"
#include "workloads/planning/eager_model.h"
#include "workloads/planning/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::planning {

namespace {

using architecture::Architecture;
using architecture::Layer;
using architecture::Weight;

// What FSDP2 gathers and reduces at once: a layer, or all that is in none.
struct ShardedUnit {
  double elements = 0, trained = 0;
  Buffer whole;       // gathered, as parameters
  Buffer collective;  // what an all-gather wrote
  Gradients gradients;
};

class TorchStep {
 public:
  TorchStep(const Architecture& model, const Step& step, const Layout& layout)
      : model_(model),
        step_(step),
        shards_(layout.zero >= 3 && layout.copies() > 1),
        ranks_(real(layout.copies())),
        e_(step.element_bytes()),
        kept_e_(shards_ || step.precision == Precision::f32 ? 4 : e_),
        // FSDP2 gathers adapters too in the step's precision; peft makes them in f32.
        operations_(model, step, e_, shards_ ? e_ : 4),
        tape_(heap_) {
    hold_weights(layout);
    if (step.accumulate > 1) again_ = hold(trained_ * gradient_bytes() / (shards_ ? ranks_ : 1), Use::gradients);
  }

  TorchMemory run() {
    TorchMemory memory;
    forward();
    memory.forward = heap_.peak();
    memory.kept = heap_.live() - static_bytes_;
    backward();
    memory.backward = heap_.peak();
    optimize();
    memory.tensors = memory.optimizer = heap_.peak();
    memory.uses = heap_.at_peak();
    return memory;
  }

 private:
  double gradient_bytes() const { return step_.method == Method::full ? kept_e_ : 4; }

  Buffer hold(double bytes, Use use, Stream stream = Stream::compute) {
    const Use before = std::exchange(heap_.use, use);
    heap_.stream = stream;
    auto buffer = std::make_shared<Block>(heap_, bytes);
    heap_.use = before;
    heap_.stream = Stream::compute;
    return buffer;
  }

  // Parameters and moments, each in a tensor of its own.
  void hold_weights(const Layout& layout) {
    const double part = shards_ ? ranks_ : 1;
    const auto hold_parameter = [&](ShardedUnit& unit, double elements, bool trained, double bytes) {
      unit.elements += elements;
      held_.push_back(hold(bytes * elements / part, Use::weights));
      if (!trained) return;
      unit.trained += elements, trained_ += elements;
      add_moments(bytes * elements / part);
    };
    const auto add = [&](ShardedUnit& unit, const std::vector<Weight>& weights) {
      for (const Weight& weight : weights) {
        hold_parameter(unit, real(weight.count()), step_.method == Method::full, kept_e_);
        if (!is_target(step_, weight)) continue;
        for (const double side : {real(weight.in), real(weight.out)})
          hold_parameter(unit, side * real(step_.lora_rank * weight.copies), true, 4);
      }
    };
    add(rest_, model_.first);
    layers_.resize(model_.order.size());
    for (std::size_t i = 0; i < layers_.size(); ++i) add(layers_[i], model_.layer(i).weights);
    add(rest_, model_.last);
    // DDP's buckets of gradients are copies of them.
    if (layout.copies() > 1 && !shards_) held_.push_back(hold(trained_ * gradient_bytes(), Use::communication));
    static_bytes_ = heap_.live();
  }

  void add_moments(double bytes) {
    for (int i = step_.optimizer == Optimizer::sgd ? 1 : 0; i < 2; ++i) held_.push_back(hold(bytes, Use::optimizer));
  }

  void gather(ShardedUnit& unit) {
    if (!shards_ || unit.whole || unit.collective) return;
    unit.collective = hold(unit.elements * e_, Use::communication, Stream::all_gather);
  }

  // In the forward pass the buffer of the all-gather stays until the next unit's is copied.
  void unshard(ShardedUnit& unit, bool forward) {
    if (!shards_ || unit.whole) return;
    gather(unit);
    if (forward) last_collective_ = nullptr;
    unit.whole = hold(unit.elements * e_, Use::communication);
    if (forward) last_collective_ = unit.collective;
    unit.collective = nullptr;
  }

  void reduce(ShardedUnit& unit) {
    if (!shards_) return;
    unit.whole = nullptr;
    if (unit.trained == 0) return;
    last_reduced_ = nullptr;
    last_reduced_ = hold(unit.trained * 4, Use::communication);
    unit.gradients.clear();
    gradients_.add(hold(unit.trained * 4 / ranks_, Use::gradients, Stream::reduce_scatter));
  }

  Gradients& gradients_of(ShardedUnit& unit) { return shards_ ? unit.gradients : gradients_; }

  void forward() {
    heap_.use = Use::activations;
    gradients_ = Gradients(step_.accumulate > 1);
    unshard(rest_, true);
    Variable hidden = operations_.embed(tape_, gradients_of(rest_));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      unshard(layers_[i], true);
      hidden = after(i, run_layer(i, before(i, hidden)));
      layers_[i].whole = nullptr;
    }
    loss_ = operations_.loss(tape_, gradients_of(rest_), hidden);
  }

  // FSDP2's hooks around a layer's backward pass.
  Variable before(std::size_t i, const Variable& hidden) {
    if (!shards_) return hidden;
    return tape_.made(hidden.data, {hidden}, [this, i](const Buffer& gradient) {
      reduce(layers_[i]);
      return std::vector<Buffer>{gradient};
    });
  }
  Variable after(std::size_t i, const Variable& hidden) {
    if (!shards_) return hidden;
    return tape_.made(hidden.data, {hidden}, [this, i](const Buffer& gradient) {
      last_collective_ = nullptr;
      unshard(layers_[i], false);
      if (i > 0) gather(layers_[i - 1]);
      return std::vector<Buffer>{gradient};
    });
  }

  Variable run_layer(std::size_t i, const Variable& hidden) {
    const Layer& layer = model_.layer(i);
    Gradients& gradients = gradients_of(layers_[i]);
    if (step_.recompute == Recompute::none) return operations_.layer(tape_, gradients, layer, hidden);
    Buffer output;
    std::size_t saved = 0;
    const auto kept = step_.recompute == Recompute::selective ? std::make_shared<Kept>() : nullptr;
    {
      Tape forgets(heap_, true, 0, kept.get());
      output = operations_.layer(forgets, gradients, layer, forgets.input(hidden.data, hidden.wanted())).data;
      saved = forgets.saved();
    }
    return tape_.made(
        output, {hidden},
        [this, &layer, &gradients, saved, kept, input = hidden.data,
         wanted = hidden.wanted()](Buffer gradient) mutable {
          if (kept) kept->products = 0;
          Tape again(heap_, false, saved, kept.get());
          const Variable in = again.input(std::move(input), wanted);
          Variable out = operations_.layer(again, gradients, layer, in);
          out.data = nullptr;
          return std::vector<Buffer>{again.backward(out, std::move(gradient))};
        },
        true);
  }

  void backward() {
    heap_.use = Use::workspace;
    tape_.backward(loss_, hold(4, Use::workspace));
    loss_ = {};
    // Adapters want no gradient of what enters the first layer, whose end is then that of the whole backward pass.
    if (layers_.front().whole) reduce(layers_.front());
    reduce(rest_);
    last_reduced_ = nullptr;
  }

  // AdamW's foreach form takes the square root of all second moments at once.
  void optimize() {
    const double elements = trained_ / (shards_ ? ranks_ : 1);
    if (step_.optimizer == Optimizer::adamw) const Buffer root = hold(elements * gradient_bytes(), Use::workspace);
    gradients_.clear();
  }

  const Architecture& model_;
  const Step& step_;
  bool shards_;
  double ranks_;
  double e_;       // bytes of an element that is computed with
  double kept_e_;  // of a parameter
  double trained_ = 0;
  double static_bytes_ = 0;

 public:
  Heap heap_;

 private:
  EagerModel operations_;
  std::vector<Buffer> held_;
  Buffer again_, last_collective_, last_reduced_;
  std::vector<ShardedUnit> layers_;
  ShardedUnit rest_;
  Gradients gradients_;
  Tape tape_;
  Variable loss_;
};

}  // namespace

std::optional<std::string> torch_problem(const Architecture& model, const Step& step, const Layout& layout) {
  const auto types = eager_types();
  if (std::ranges::find(types, model.type) == types.end())
    return fmt::format("engine=torch: the operations of {} are not known, only those of {}; use engine=assay",
                       model.type, joined(types));
  if (step.method == Method::qlora) return "engine=torch: knows method=full and lora; use method=lora";
  if (step.method == Method::lora && model.stored)
    return "engine=torch: frozen weights that a file quantises are not known; use engine=assay";
  if (step.optimizer != Optimizer::adamw && step.optimizer != Optimizer::sgd)
    return fmt::format("engine=torch: knows optimizer=adamw and sgd, not {}; use optimizer=adamw",
                       word_of(step.optimizer));
  if (step.offload != Offload::none) return "engine=torch: knows no offload; use offload=none";
  for (const auto& [name, value] :
       {std::pair("tp", layout.tp), {"pp", layout.pp}, {"ep", layout.ep}, {"cp", layout.cp}})
    if (value > 1)
      return fmt::format("engine=torch: ranks share the data, with zero=0 (DDP) or zero=3 (FSDP2); use {}=1", name);
  if (layout.zero == 1 || layout.zero == 2)
    return fmt::format("engine=torch: zero={} is neither DDP (0) nor FSDP2 (3); use zero=3", layout.zero);
  return std::nullopt;
}

TorchMemory torch_memory(const Architecture& model, const Step& step, const Layout& layout) {
  TorchStep run(model, step, layout);
  TorchMemory memory = run.run();
  memory.reserved = reserved_bytes(run.heap_.events());
  return memory;
}

}  // namespace assay::planning
