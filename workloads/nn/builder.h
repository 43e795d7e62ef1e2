// Appends instructions to a program while a model describes one micro-batch.
#pragma once

#include "workloads/nn/program.h"
#include "workloads/nn/step_layout.h"

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace assay::nn {

// A learned array: an index into the model's parameters.
struct Parameter {
  std::int32_t index = -1;
  explicit operator bool() const { return index >= 0; }
};

// A tensor rounded to 8 bits; products want the terms of their sums side by side.
struct Rounded {
  Tensor plain;       // (rows, columns)
  Tensor transposed;  // (columns, rows)
  Tensor inverse;     // one number that undoes its scale
};

// How packed forms of weights live: made where they are used, or kept for the micro-batches of an optimizer step.
enum class Packing : std::uint8_t { transient, pack, reuse };

// Which of a step's programs is built.
struct Variant {
  bool training = true;     // with a backward pass; batch norm by the batch's own statistics
  bool accumulate = false;  // gradients of earlier micro-batches are added to
  Packing packing = Packing::transient;
};

class Builder {
 public:
  // Both must outlive the builder. `layout` grows as programs ask for what they share.
  Builder(StepLayout& layout, const Variant& variant, Program& program);

  // What is being built.
  bool training() const { return variant_.training; }
  bool checkpointing() const { return layout_.options.checkpointing == Checkpointing::full; }
  const BatchShape& batch() const { return layout_.options.batch; }
  std::int64_t logits_bytes() const { return layout_.options.logits_bytes; }
  double smoothing() const { return training() ? layout_.options.smoothing : 0; }  // evaluation has none
  DType compute() const { return layout_.options.precision.compute; }
  DType product() const { return layout_.options.precision.product; }
  // Whether linear layers of blocks multiply in 8 bits.
  bool fp8() const { return layout_.options.precision.fp8_linear; }
  DType master() const { return layout_.options.precision.master; }
  DType gradient_type() const { return layout_.options.precision.grad; }
  // Of norms' parameters and statistics, and of rotary angles.
  DType statistics() const { return compute() == DType::f64 ? DType::f64 : DType::f32; }

  void phase(Phase phase) { phase_ = phase; }
  // While a forward pass is repeated for the backward pass: running statistics stay as they are.
  bool recomputing() const { return recomputing_; }
  void recomputing(bool value) { recomputing_ = value; }

  // Names of tensors, spans and messages while this lives: "block.3" then "attention" give "block.3.attention".
  class Scope {
   public:
    Scope(Builder& builder, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    std::string outer_;
  };

  // Arrays of the arena. Opaque ones hold an op's own bytes; zero bytes give no tensor.
  Tensor tensor(std::string_view name, std::int64_t elements, DType dtype);
  // Rows of `row` elements, `stride` apart; what lies between them is padding.
  Tensor rows(std::string_view name, std::int64_t rows, std::int64_t row, std::int64_t stride, DType dtype);
  Tensor opaque(std::string_view name, std::size_t bytes, Purpose purpose = Purpose::activation);

  // A parameter by its name under the current scope. Throws Error when the model does not list it.
  Parameter parameter(std::string_view name) const;
  const ParameterSpec& spec(Parameter parameter) const {
    return layout_.specs[static_cast<std::size_t>(parameter.index)];
  }
  Tensor weight(Parameter parameter) const;
  Tensor gradient(Parameter parameter) const;
  // As if the parameter had `elements` in all: what lies beyond its own is zero, as are gradients that are written
  // there.
  void widen(Parameter parameter, std::int64_t elements);
  // Whether the next contribution to this gradient adds to what is there; to be asked once for each contribution.
  bool adds_to(Parameter parameter);

  // Running mean and variance of a batch norm.
  std::pair<Tensor, Tensor> running(std::string_view name, std::int64_t channels, double momentum);
  // A table that never changes; `fill` is called once, at allocation. Asked for again by the same name: the same.
  Tensor constant(const std::string& name, std::int64_t elements, std::function<void(double*)> fill);
  Tensor input(Input which, std::int64_t elements);
  Tensor loss_sums() const { return sums_; }
  Tensor gradient_scale() const { return scale_; }

  // An op of the step's backend. Throws UsageError with the scope and the backend's reason when it has none.
  template <typename Op, typename Desc>
  std::shared_ptr<Op> op(const Desc& desc) {
    std::string reason;
    std::shared_ptr<Op> made = layout_.ops.find<Op>(desc, reason);
    if (!made) refuse(reason);
    return made;
  }
  // Whether the backend has an op for it.
  template <typename Op, typename Desc>
  bool has(const Desc& desc) {
    std::string reason;
    return layout_.ops.find<Op>(desc, reason) != nullptr;
  }
  // An op that reads a convolution's weights, and the weights as it wants them: the rounded copy of the masters where
  // it takes that as it lies.
  template <typename Op>
  std::pair<std::shared_ptr<Op>, Tensor> on_weights(ops::ConvDesc desc, Parameter parameter) {
    if (layout_.copies_weights) {
      desc.pack_from = compute();
      if (const auto direct = op<Op>(desc); direct->packed_bytes() == 0) return {direct, plain_operand(parameter)};
      desc.pack_from = master();
    }
    const auto made = op<Op>(desc);
    return {made, operand(parameter, made)};
  }
  // A product whose b is a parameter: packed where the backend packs, else as it lies.
  std::shared_ptr<ops::Matmul> weight_matmul(ops::MatmulDesc desc);
  // The parameter as the op wants it (its packed form, made when this program has to).
  template <typename Op>
  Tensor operand(Parameter parameter, const std::shared_ptr<Op>& op) {
    const std::size_t bytes = op->packed_bytes();
    if (bytes == 0) return plain_operand(parameter);
    auto pack = [op](Stream& stream, const void* from, void* to) { op->pack(stream, from, to); };
    return packed_operand(parameter, op.get(), bytes, std::move(pack));
  }

  // A product's bias and its type: the rounded copy where there are copies, since what rounds a bias would be one more
  // kernel a product.
  DType bias_type() const { return layout_.copies_weights ? compute() : master(); }
  Tensor bias(Parameter parameter) {
    return parameter && layout_.copies_weights ? plain_operand(parameter) : weight(parameter);
  }

  // Whether what is built now is read again by the backward pass of this run of it: not where a later one makes it
  // anew.
  bool kept_for_backward() const { return training() && (!checkpointing() || recomputing_); }
  // What of a tensor is rounded to 8 bits; `name` tells it from the scope's others.
  struct Rounding {
    std::string_view name;
    DType from = DType::bf16;
    DType to = DType::fp8_e4m3;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool plain = true;
    bool transposed = false;
    Parameter column_sums = {};  // whose gradient the sums of the columns are
  };
  Rounded rounded(Tensor x, const Rounding& rounding);
  // A matrix's weight, rounded from the masters once an optimizer step; transposed only when training.
  Rounded rounded_weight(Parameter parameter);

  // Appends a run of the op. `args` makes its arguments from places; its workspace is lent here. Handles that name
  // nothing are passed over; what is updated in place stands in both lists.
  template <typename Op, typename MakeArgs>
  void run(const std::shared_ptr<Op>& op, std::initializer_list<Tensor> reads, std::initializer_list<Tensor> writes,
           MakeArgs args) {
    const Tensor workspace = opaque("workspace", op->workspace_bytes(), Purpose::workspace);
    std::vector<Tensor> written(writes);
    written.push_back(workspace);
    emit(reads, std::move(written), [op, workspace, args](Stream& stream, const Places& places) {
      auto ready = args(places);
      ready.workspace = places.at(workspace);
      op->run(stream, ready);
    });
  }
  void emit(std::vector<Tensor> reads, std::vector<Tensor> writes, std::function<void(Stream&, const Places&)> run);

  // Ends the program: lifetimes, offsets in the arena, when gradients are ready.
  void finish();

 private:
  using Pack = std::function<void(Stream&, const void*, void*)>;

  [[noreturn]] void refuse(const std::string& reason) const;
  std::string full_name(std::string_view name) const;
  Tensor add(TensorInfo info);
  Tensor plain_operand(Parameter parameter);
  Tensor packed_operand(Parameter parameter, const ops::Op* key, std::size_t bytes, Pack pack);
  void plan();
  std::size_t slot_of(const std::string& name, DType dtype);
  Tensor scaling(Region region, std::size_t slot);
  void append_rounding(Tensor x, const Rounding& rounding, const Rounded& to, std::size_t slot);

  StepLayout& layout_;
  Variant variant_;
  Program& program_;
  Phase phase_ = Phase::forward;
  bool recomputing_ = false;
  std::string scope_;
  std::vector<bool> contributed_;                                    // to each parameter's gradient, in this program
  std::map<std::pair<std::size_t, const ops::Op*>, Tensor> packed_;  // lasting forms that this program uses
  std::map<std::string, Tensor> lasting_;
  std::map<std::int32_t, Rounded> rounded_weights_;
  Tensor sums_;
  Tensor scale_;
};

}  // namespace assay::nn
