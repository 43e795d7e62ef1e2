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

// A tensor rounded to 8 bits. Products need the terms of each sum to be contiguous, hence both layouts.
struct Rounded {
  Tensor plain;       // (rows, columns)
  Tensor transposed;  // (columns, rows)
  Tensor inverse;     // scalar that undoes its scale
};

// A tensor, which may be null, for a member of an op's arguments; without a member it is only named as read or written.
template <typename Args>
struct Operand {
  Operand(Tensor named) : tensor(named) {}
  // The op gets the place `skip` bytes behind the tensor's beginning.
  template <typename T>
  Operand(T* Args::*member, Tensor given, std::size_t skip = 0)
      : tensor(given), set([member, skip](Args& args, void* place) {
          args.*member = static_cast<T*>(static_cast<void*>(static_cast<std::byte*>(place) + skip));
        }) {}

  Tensor tensor;
  std::function<void(Args& args, void* place)> set = {};
};

// Lifetime of packed weights: made at each use, or kept for all micro-batches of an optimizer step.
enum class Packing : std::uint8_t { transient, pack, reuse };

// Which of a step's programs is built.
struct Variant {
  bool training = true;     // with a backward pass; batch norm uses the batch's statistics
  bool accumulate = false;  // adds to the gradients of earlier micro-batches
  Packing packing = Packing::transient;
};

class Builder {
 public:
  // Both must outlive the builder. `layout` grows as programs request shared arrays.
  Builder(StepLayout& layout, const Variant& variant, Program& program);

  // The variant that is being built.
  bool training() const { return variant_.training; }
  bool checkpointing() const { return layout_.options.checkpointing == Checkpointing::full; }
  bool selective() const { return training() && layout_.options.checkpointing == Checkpointing::selective; }
  const BatchShape& batch() const { return layout_.options.batch; }
  std::int64_t logits_bytes() const { return layout_.options.logits_bytes; }
  double smoothing() const { return training() ? layout_.options.smoothing : 0; }  // evaluation has none
  DType compute() const { return layout_.options.precision.compute; }
  DType product() const { return layout_.options.precision.product; }
  // Whether the linear layers of blocks multiply in 8 bits.
  bool fp8() const { return layout_.options.precision.fp8_linear; }
  DType master() const { return layout_.options.precision.master; }
  DType gradient_type() const { return layout_.options.precision.grad; }
  // The type of norm parameters and statistics, and of rotary angles.
  DType statistics() const { return compute() == DType::f64 ? DType::f64 : DType::f32; }

  void phase(Phase phase) { phase_ = phase; }
  // True while a forward pass is repeated for the backward pass: running statistics are not updated.
  bool recomputing() const { return recomputing_; }
  void recomputing(bool value) { recomputing_ = value; }

  // Prefixes the names of tensors, spans and messages during its lifetime: "block.3", "attention" and "qkv" nest to
  // "block.3.attention.qkv".
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

  // Arrays in the arena. Opaque ones hold an op's private data; zero bytes give no tensor.
  Tensor tensor(std::string_view name, std::int64_t elements, DType dtype);
  // Rows of `row` elements, `stride` apart, with padding between them.
  Tensor rows(std::string_view name, std::int64_t rows, std::int64_t row, std::int64_t stride, DType dtype);
  Tensor opaque(std::string_view name, std::size_t bytes, Purpose purpose = Purpose::activation);

  // A parameter by its name in the current scope. Throws Error if the model does not list it.
  Parameter parameter(std::string_view name) const;
  const ParameterSpec& spec(Parameter parameter) const {
    return layout_.specs[static_cast<std::size_t>(parameter.index)];
  }
  Tensor weight(Parameter parameter) const;
  Tensor gradient(Parameter parameter) const;
  // Makes room for `elements` in all: elements beyond the parameter's own are zero, as are gradients written there.
  void widen(Parameter parameter, std::int64_t elements);
  // Programs leave elements of this gradient as they are: zero.
  void writes_partly(Parameter parameter) { layout_.partly_written[static_cast<std::size_t>(parameter.index)] = true; }
  // Whether the next contribution to this gradient adds to earlier ones; call once per contribution.
  bool adds_to(Parameter parameter);

  // Running mean and variance of a batch norm.
  std::pair<Tensor, Tensor> running(std::string_view name, std::int64_t channels, double momentum);
  // A constant table; `fill` is called once, at allocation. The same name gives the same table.
  Tensor constant(const std::string& name, std::int64_t elements, std::function<void(double*)> fill);
  Tensor input(Input which, std::int64_t elements);
  Tensor loss_sums() const { return sums_; }
  Tensor gradient_scale() const { return scale_; }

  // An op of the step's backend. Throws UsageError with the scope and the backend's reason if it has none.
  template <typename Op, typename Desc>
  std::shared_ptr<Op> op(const Desc& desc) {
    std::string reason;
    std::shared_ptr<Op> made = layout_.ops.find<Op>(desc, reason);
    if (!made) refuse(reason);
    return made;
  }
  // Whether the backend has an op for this descriptor.
  template <typename Op, typename Desc>
  bool has(const Desc& desc) {
    std::string reason;
    return layout_.ops.find<Op>(desc, reason) != nullptr;
  }
  // An op that reads a convolution's weights, and the weights in the form it needs: the rounded copy of the masters if
  // the op reads that unpacked.
  template <typename Op>
  std::pair<std::shared_ptr<Op>, Tensor> op_and_weights(ops::ConvDesc desc, Parameter parameter) {
    if (layout_.copies_weights) {
      desc.pack_from = compute();
      if (const auto direct = op<Op>(desc); direct->packed_bytes() == 0) return {direct, plain_operand(parameter)};
    }
    desc.pack_from = packed_type();
    const auto made = op<Op>(desc);
    return {made, operand(parameter, made)};
  }
  // A product whose b is a parameter: packed if the backend supports it, else plain.
  std::shared_ptr<ops::Matmul> weight_matmul(ops::MatmulDesc desc);
  // The parameter in the form that the op needs; this program packs it if the op needs it packed.
  template <typename Op>
  Tensor operand(Parameter parameter, const std::shared_ptr<Op>& op) {
    const std::size_t bytes = op->packed_bytes();
    if (bytes == 0) return plain_operand(parameter);
    auto pack = [op](Stream& stream, const void* from, void* to) { op->pack(stream, from, to); };
    return packed_operand(parameter, op.get(), bytes, std::move(pack));
  }

  // A product's bias and its type: the rounded copy if there are copies, which saves a rounding kernel per product.
  DType bias_type() const { return layout_.copies_weights ? compute() : master(); }
  Tensor bias(Parameter parameter) {
    return parameter && layout_.copies_weights ? plain_operand(parameter) : weight(parameter);
  }

  // A table of which rows are only looked up, and its type: the rounded copy if ranks divide the masters.
  DType table_type() const { return divides_masters() ? compute() : master(); }
  Tensor table(Parameter parameter) { return divides_masters() ? plain_operand(parameter) : weight(parameter); }

  // Whether the backward pass reads what is being built, rather than a later recomputation of it.
  bool kept_for_backward() const { return training() && (!checkpointing() || recomputing_); }
  // How a tensor is rounded to 8 bits; `name` is unique within the scope.
  struct Rounding {
    std::string_view name;
    DType from = DType::bf16;
    DType to = DType::fp8_e4m3;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    bool plain = true;
    bool transposed = false;
    Parameter column_sums = {};  // parameter whose gradient is the column sums
  };
  Rounded rounded(Tensor x, const Rounding& rounding);
  // A weight matrix, rounded from the masters once per optimizer step; transposed only when training.
  Rounded rounded_weight(Parameter parameter);

  // Appends a run of the op, which gets the places of its operands and a workspace, and the rest from `args`. List
  // in-place operands under both reads and writes.
  template <typename Op>
  void run(const std::shared_ptr<Op>& op, std::initializer_list<Operand<typename Op::Args>> reads,
           std::initializer_list<Operand<typename Op::Args>> writes, const typename Op::Args& args = {}) {
    std::vector<Operand<typename Op::Args>> operands(reads);
    operands.insert(operands.end(), writes);
    operands.emplace_back(&Op::Args::workspace, opaque("workspace", op->workspace_bytes(), Purpose::workspace));
    std::vector<Tensor> tensors;
    for (const auto& one : operands) tensors.push_back(one.tensor);
    const auto written = tensors.begin() + static_cast<std::ptrdiff_t>(reads.size());
    emit({tensors.begin(), written}, {written, tensors.end()},
         [op, operands = std::move(operands), args](Stream& stream, const Places& places) {
           typename Op::Args ready = args;
           for (const auto& one : operands)
             if (one.set) one.set(ready, places.at(one.tensor));
           op->run(stream, ready);
         });
  }
  void emit(std::vector<Tensor> reads, std::vector<Tensor> writes, std::function<void(Stream&, const Places&)> run);

  // Completes the program but for its arena: when gradients are ready.
  void finish();

 private:
  using Pack = std::function<void(Stream&, const void*, void*)>;

  [[noreturn]] void refuse(const std::string& reason) const;
  std::string full_name(std::string_view name) const;
  Tensor add(TensorInfo info);
  Tensor plain_operand(Parameter parameter);
  Tensor packed_operand(Parameter parameter, const ops::Op* key, std::size_t bytes, Pack pack);
  bool divides_masters() const {
    return layout_.options.layout.divides() && (layout_.copies_weights || layout_.packs_copies);
  }
  // The type of the weights that pack() reads.
  DType packed_type() const { return layout_.packs_copies ? compute() : master(); }
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
  std::map<std::pair<std::size_t, const ops::Op*>, Tensor> packed_;  // kept forms that this program uses
  std::map<std::string, Tensor> lasting_;
  std::map<std::int32_t, Rounded> rounded_weights_;
  Tensor sums_;
  Tensor scale_;
};

}  // namespace assay::nn
