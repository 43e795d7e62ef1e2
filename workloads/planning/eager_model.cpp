#include "workloads/planning/eager_model.h"

#include "workloads/planning/weights.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace assay::planning {

namespace {

using architecture::Architecture;
using architecture::Layer;
using architecture::Weight;

bool is_gemma(const Architecture& model) { return model.type.starts_with("gemma"); }

}  // namespace

std::vector<std::string> eager_types() {
  return {"bert",  "gemma",   "gemma2", "gemma3_text", "gpt2",  "gpt_neox",
          "llama", "mistral", "phi3",   "qwen2",       "qwen3", "roberta"};
}

const Weight& EagerModel::next_matrix() {
  while (!layer_->weights.at(next_matrix_).linear()) ++next_matrix_;
  return layer_->weights[next_matrix_++];
}

Variable EagerModel::linear(const Variable& x, const Weight& matrix, bool copies) {
  const bool trained = trains();
  if (trained || x.wanted()) at_.tape->saves();
  const double in = real(matrix.in), out = real(matrix.out), bytes = e_ * tokens_ * out;
  Variable made = at_.tape->made(
      matrix.bias ? at_.allocate(bytes) : at_.tape->allocate_product(bytes), {x},
      [this, at = at_, in, out, copies, kept = trained ? x.data : Buffer(), wanted = x.wanted(),
       trained](Buffer gradient) {
        if (copies) gradient = at.make(tokens_ * out);
        if (trained) at.add(at.make(in * out));
        return std::vector<Buffer>{wanted ? at.make(tokens_ * in) : Buffer()};
      },
      trained);
  return is_target(step_, matrix) ? adapter(x, made, matrix) : made;
}

// As peft's Linear: the input is cast to what adapters have, and the sum is promoted to it.
Variable EagerModel::adapter(const Variable& x, const Variable& base, const Weight& matrix) {
  const double rank = real(step_.lora_rank), in = real(matrix.in), out = real(matrix.out), e = adapter_e_;
  const bool casts = e_ < e;
  Buffer wide = casts ? at_.allocate(e * tokens_ * in) : x.data;
  at_.tape->saves();
  Buffer low = at_.tape->allocate_product(e * tokens_ * rank);
  at_.tape->saves();
  Buffer high = at_.tape->allocate_product(e * tokens_ * out);
  Buffer scaled = at_.allocate(e * tokens_ * out);
  high = nullptr;
  Buffer sum = at_.allocate(e * tokens_ * out);
  scaled = nullptr;
  if (casts) sum = at_.make(tokens_ * out);
  return at_.tape->made(
      std::move(sum), {x, base},
      [this, at = at_, wide, low, rank, in, out, e, casts, wanted = x.wanted(),
       base_wanted = base.wanted()](Buffer gradient) mutable {
        if (casts) gradient = at.allocate(e * tokens_ * out);
        const Buffer base_gradient = !base_wanted ? Buffer() : casts ? at.make(tokens_ * out) : gradient;
        gradient = at.allocate(e * tokens_ * out);  // scaled
        at.add(at.allocate(e * rank * out));
        Buffer low_gradient = at.allocate(e * tokens_ * rank);
        gradient = low = nullptr;
        at.add(at.allocate(e * rank * in));
        Buffer back = wanted ? at.allocate(e * tokens_ * in) : Buffer();
        low_gradient = wide = nullptr;
        if (wanted && casts) back = at.make(tokens_ * in);
        return std::vector<Buffer>{back, base_gradient};
      },
      true);
}

Variable EagerModel::norm(const Variable& x, double width) {
  return model_.rms ? rms_norm(x, width) : layer_norm(x, width);
}

Variable EagerModel::layer_norm(const Variable& x, double width) {
  at_.tape->saves();
  return at_.tape->made(
      at_.make(tokens_ * width), {x},
      [this, at = at_, kept = x.data, width](const Buffer&) { return std::vector<Buffer>{at.make(tokens_ * width)}; },
      trains());
}

// In f32 whatever the input has: its copy is kept, and what the weight multiplies: Gemma's before it is narrow again,
// the others' after.
Variable EagerModel::rms_norm(const Variable& x, double width) {
  const double wide = 4 * tokens_ * width;
  const bool gemma = is_gemma(model_), adapters = !trains();
  at_.tape->saves();
  Buffer input = narrow() ? at_.allocate(wide) : x.data;
  { const Buffer square = at_.allocate(wide); }
  Buffer scaled = at_.allocate(wide);
  Buffer out;
  if (gemma) {
    at_.tape->saves();
    out = at_.allocate(wide);
    if (narrow()) out = at_.make(tokens_ * width);
    if (adapters) scaled = nullptr;
  } else {
    if (narrow()) scaled = at_.make(tokens_ * width);
    at_.tape->saves();
    out = at_.make(tokens_ * width);
    if (adapters) scaled = nullptr;
  }
  return at_.tape->made(
      out, {x},
      [this, at = at_, input, scaled, wide, width, gemma, wanted = x.wanted()](Buffer gradient) mutable {
        if (gemma && narrow()) gradient = at.allocate(wide);
        if (wanted || gemma) {
          const Buffer of_weight = trains() ? at.allocate(gemma ? wide : e_ * tokens_ * width) : Buffer();
          gradient = at.allocate(gemma ? wide : e_ * tokens_ * width);
        }
        scaled = nullptr;
        if (!wanted) return std::vector<Buffer>{Buffer()};
        if (!gemma && narrow()) gradient = at.allocate(wide);
        Buffer of_input;
        {
          const Buffer of_scale = at.allocate(wide);
          of_input = at.allocate(wide);
          gradient = nullptr;
        }
        Buffer mean = at.allocate(wide);
        Buffer power = at.allocate(wide), twice = at.allocate(wide);
        power = at.allocate(wide);
        mean = twice = nullptr;
        Buffer sum = at.allocate(wide);
        of_input = power = input = nullptr;
        if (narrow()) sum = at.make(tokens_ * width);
        return std::vector<Buffer>{sum};
      },
      trains());
}

Variable EagerModel::add(const Variable& a, const Variable& b) {
  return at_.tape->made(at_.make(tokens_ * width_), {a, b}, [](const Buffer& gradient) {
    return std::vector<Buffer>{gradient, gradient};
  });
}

// GPT-2's gelu is written in Python as a formula, whose parts are all kept.
Variable EagerModel::activation(const Variable& x, double width) {
  at_.tape->saves();
  const double all = tokens_ * width;
  if (model_.type != "gpt2")
    return at_.tape->made(at_.make(all), {x},
                          [at = at_, kept = x.data, all](const Buffer&) { return std::vector<Buffer>{at.make(all)}; });
  Buffer half = at_.make(all), cube = at_.make(all), inner = at_.make(all);
  cube = at_.make(all);
  inner = at_.make(all);
  Buffer tangent = at_.make(all);
  inner = cube = nullptr;
  Buffer one = at_.make(all);
  return at_.tape->made(at_.make(all), {x},
                        [at = at_, kept = x.data, half, tangent, one, all](Buffer gradient) mutable {
                          Buffer of_half = at.make(all), of_one = at.make(all);
                          gradient = half = one = nullptr;
                          Buffer of_inner = at.make(all);
                          of_one = tangent = nullptr;
                          of_inner = at.make(all);
                          Buffer of_cube = at.make(all), power = at.make(all), twice = at.make(all);
                          of_cube = at.make(all);
                          power = twice = nullptr;
                          Buffer sum = at.make(all);
                          of_inner = of_cube = kept = nullptr;
                          of_half = at.make(all);
                          return std::vector<Buffer>{at.make(all)};
                        });
}

Variable EagerModel::gated_product(const Variable& gate, const Variable& up, double width) {
  at_.tape->saves();
  return at_.tape->made(at_.make(tokens_ * width), {gate, up},
                        [this, at = at_, a = gate.data, b = up.data, width](const Buffer&) {
                          return std::vector<Buffer>{at.make(tokens_ * width), at.make(tokens_ * width)};
                        });
}

Variable EagerModel::product_of_fused(const Variable& both, double width) {
  const double all = tokens_ * width;
  at_.tape->saves();
  Buffer active = at_.make(all);
  at_.tape->saves();
  return at_.tape->made(at_.make(all), {both}, [at = at_, kept = both.data, active, all](Buffer gradient) mutable {
    Buffer of_up = at.make(all), of_active = at.make(all);
    gradient = active = nullptr;
    Buffer of_gate = at.make(all);
    of_active = kept = nullptr;
    return std::vector<Buffer>{at.make(2 * all)};
  });
}

Variable EagerModel::mlp(const Variable& x, double width) {
  if (!model_.gated) {
    const Variable in = linear(x, next_matrix());
    return linear(activation(in, width), next_matrix());
  }
  if (model_.type == "phi3") {
    const Variable both = linear(x, next_matrix());
    return linear(product_of_fused(both, width), next_matrix());
  }
  const Variable active = activation(linear(x, next_matrix()), width);
  const Variable up = linear(x, next_matrix());
  return linear(gated_product(active, up, width), next_matrix());
}

Variable EagerModel::layer(Tape& tape, Gradients& gradients, const Layer& layer, const Variable& input) {
  at_ = {&tape, &gradients, e_};
  layer_ = &layer, next_matrix_ = 0;
  scores_ = nullptr;
  const double mlp_width = real(layer.mlp_width);
  if (normalizes_after()) {
    const Variable middle = norm(add(attention(input, layer.attention), input), width_);
    return norm(add(mlp(middle, mlp_width), middle), width_);
  }
  const bool both_sides = layer.norms == 4;
  Variable part = attention(norm(input, width_), layer.attention);
  if (both_sides) part = norm(part, width_);
  if (model_.type == "gpt_neox") {  // both parts of one input
    const Variable other = mlp(norm(input, width_), mlp_width);
    return add(add(other, part), input);
  }
  const Variable middle = add(input, part);
  part = mlp(norm(middle, width_), mlp_width);
  if (both_sides) part = norm(part, width_);
  scores_ = nullptr;
  return add(middle, part);
}

Variable EagerModel::embed(Tape& tape, Gradients& gradients) {
  at_ = {&tape, &gradients, e_};
  const double table = e_ * real(model_.vocabulary) * width_;
  // Masks of scores that are not of a fused kernel, one for each kind of layer.
  if (model_.type == "gemma2") masks_ = at_.make(real(std::ssize(model_.kinds)) * tokens_ * real(step_.seq));
  // Positions and types are added one after the other.
  Buffer out = at_.make(tokens_ * width_);
  const bool sums = model_.first.size() > 1;
  if (sums || is_gemma(model_)) out = at_.make(tokens_ * width_);
  Variable made = at_.tape->made(
      out, {},
      [this, at = at_, table](const Buffer&) {
        Buffer gradient = at.allocate(table);
        if (tied_) {
          gradient = at.allocate(table);
          tied_ = nullptr;
        }
        at.add(std::move(gradient));
        return std::vector<Buffer>{};
      },
      trains());
  return normalizes_after() ? norm(made, width_) : made;
}

// nll_loss(log_softmax(logits)); causal models widen their logits to f32 first.
Variable EagerModel::cross_entropy(const Variable& logits, double rows, double classes, bool widens) {
  const bool widened = widens && narrow();
  const double bytes = (widens ? 4 : e_) * rows * classes;
  const Buffer wide = widened ? at_.allocate(bytes) : Buffer();
  at_.tape->saves();
  Buffer logarithms = at_.allocate(bytes);
  return at_.tape->made(at_.allocate(4), {logits},
                        [at = at_, logarithms, bytes, widened, rows, classes](const Buffer&) mutable {
                          Buffer chosen = at.allocate(bytes), gradient = at.allocate(bytes);
                          chosen = logarithms = nullptr;
                          if (widened) gradient = at.make(rows * classes);
                          return std::vector<Buffer>{gradient};
                        });
}

// As Gemma 2 caps them: divided, their tangent, multiplied.
Variable EagerModel::capped_logits(Variable logits, double elements) {
  Buffer divided = at_.make(elements);
  logits.data = nullptr;
  at_.tape->saves();
  Buffer tangent = at_.make(elements);
  divided = nullptr;
  return at_.tape->made(at_.make(elements), {logits}, [at = at_, tangent, elements](Buffer gradient) mutable {
    gradient = at.make(elements);
    gradient = at.make(elements);
    tangent = nullptr;
    return std::vector<Buffer>{at.make(elements)};
  });
}

Variable EagerModel::loss(Tape& tape, Gradients& gradients, const Variable& input) {
  at_ = {&tape, &gradients, e_};
  Variable hidden = input;
  if (normalizes_after())
    hidden = norm(activation(linear(input, model_.last.front()), width_), width_);
  else
    hidden = norm(input, width_);
  const double classes = real(model_.vocabulary);
  at_.tape->saves();
  const bool trained = trains();
  Variable logits = at_.tape->made(
      at_.make(tokens_ * classes), {hidden},
      [this, at = at_, kept = hidden.data, trained, classes](const Buffer&) {
        if (trained) {
          Buffer table = at.make(classes * width_);
          if (model_.tied)
            tied_ = std::move(table);
          else
            at.add(std::move(table));
        }
        return std::vector<Buffer>{at.make(tokens_ * width_)};
      },
      trained);
  if (step_.recompute == Recompute::none) masks_ = nullptr;
  if (model_.type == "gemma2") logits = capped_logits(std::move(logits), tokens_ * classes);
  return cross_entropy(logits, tokens_, classes, model_.causal);
}

}  // namespace assay::planning
