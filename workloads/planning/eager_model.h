// Transformers as the library `transformers` (5.24) executes them in PyTorch: which tensors its operations make and
// keep.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/planning/eager.h"
#include "workloads/planning/request.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace assay::planning {

// Types of models whose operations are known.
std::vector<std::string> eager_types();

class EagerModel {
 public:
  // Operations are recorded on `tape`, gradients of parameters go to `gradients`. `adapter_bytes`: of an element of
  // adapters.
  EagerModel(const architecture::Architecture& model, const Step& step, double element_bytes, double adapter_bytes)
      : model_(model),
        step_(step),
        e_(element_bytes),
        adapter_e_(adapter_bytes),
        tokens_(real(step.micro_batch) * real(step.seq)),
        width_(real(model.width)) {}

  Variable embed(Tape& tape, Gradients& gradients);
  Variable layer(Tape& tape, Gradients& gradients, const architecture::Layer& layer, const Variable& input);
  // From the last layer's output to the loss. Only the loss stays: logits are let go.
  Variable loss(Tape& tape, Gradients& gradients, const Variable& input);

 private:
  // Where operations are recorded: their backward passes keep it.
  struct At {
    Tape* tape = nullptr;
    Gradients* gradients = nullptr;
    double element_bytes = 0;

    Buffer allocate(double bytes) const { return tape->allocate(bytes); }
    Buffer make(double elements) const { return tape->allocate(element_bytes * elements); }
    void add(Buffer gradient) const { gradients->add(std::move(gradient)); }
  };

  bool normalizes_after() const { return model_.type == "bert" || model_.type == "roberta"; }
  bool trains() const { return step_.method == Method::full; }
  // The layer's next matrix in the order of use.
  const architecture::Weight& next_matrix();
  // `copies`: its gradient comes transposed and is copied.
  Variable linear(const Variable& x, const architecture::Weight& matrix, bool copies = false);
  Variable adapter(const Variable& x, const Variable& base, const architecture::Weight& matrix);
  Variable norm(const Variable& x, double width);
  Variable rms_norm(const Variable& x, double width);
  Variable layer_norm(const Variable& x, double width);
  Variable add(const Variable& a, const Variable& b);
  Variable rotated(const Variable& x, double width);
  Variable attend(const Variable& q, const Variable& k, const Variable& v, const architecture::Attention& attention);
  Variable attend_eagerly(const Variable& q, const Variable& k, const Variable& v,
                          const architecture::Attention& attention);
  Variable attention(const Variable& x, const architecture::Attention& attention);
  Variable activation(const Variable& x, double width);
  Variable gated_product(const Variable& gate, const Variable& up, double width);
  Variable mlp(const Variable& x, double width);
  Variable product_of_fused(const Variable& both, double width);
  Variable capped_logits(Variable logits, double elements);
  Variable cross_entropy(const Variable& logits, double rows, double classes, bool widens);
  bool narrow() const { return e_ < 4; }

  const architecture::Architecture& model_;
  const Step& step_;
  double e_;          // bytes of an element
  double adapter_e_;  // of adapters
  double tokens_;
  double width_;
  At at_;
  const architecture::Layer* layer_ = nullptr;
  std::size_t next_matrix_ = 0;
  Buffer masks_, scores_;
  Buffer tied_;  // the head's part of a tied table's gradient
};

}  // namespace assay::planning
