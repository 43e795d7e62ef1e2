// One optimizer pass over flat buffers, and the norm of all gradients that precedes it.
#pragma once

#include "workloads/ops/op.h"
#include "workloads/ops/step_state.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::ops {

enum class OptimizerKind {
  adamw,  // Loshchilov & Hutter 2019, decay decoupled, bias-corrected, as torch.optim.AdamW
  sgd,    // momentum without dampening, as torch.optim.SGD: v = momentum v + (g + decay w), w -= lr v
};
constexpr auto words(OptimizerKind) { return std::to_array<std::string_view>({"adamw", "sgd"}); }

// Elements [begin, end) of the flat buffer share a weight decay.
struct DecaySegment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  double decay = 0;
};

struct OptimizerDesc {
  OptimizerKind kind = OptimizerKind::adamw;
  std::int64_t count = 0;
  std::vector<DecaySegment> segments;  // in order, without gaps
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;
  DType master = DType::f32;  // type of the updated weights and the moments
  DType gradient = DType::f32;
  DType parameter = DType::f32;  // if it differs from master, a rounded copy is written too
};

// Why no device could make this op; nothing if it is valid.
std::optional<std::string> problem_of(const OptimizerDesc& desc);

class Optimizer : public OpOf<OptimizerDesc> {
 public:
  struct Args {
    const StepState* state = nullptr;  // on the device; nothing is written if found_infinity is set
    void* master = nullptr;            // (count)
    const void* gradient = nullptr;    // (count)
    void* moment1 = nullptr;           // (count): first moment, or velocity
    void* moment2 = nullptr;           // (count); adamw only
    void* parameter = nullptr;         // (count); if desc.parameter differs from desc.master
    void* workspace = nullptr;
  };
  virtual void run(Stream&, const Args&) = 0;
};

// Writes norm, coefficient = min(1, max_norm / (norm + 1e-6)) / scale and found_infinity of the state. scale is
// loss_scale, or float(loss_scale * valid / expected) if valid targets were counted during the step. Without any valid
// target found_infinity is set.
struct GradientNormDesc {
  // Elements [begin, begin + count) of the gradient, or as many elements of another rank's.
  struct Piece {
    std::int64_t begin = 0;
    std::int64_t count = 0;
    bool held = true;
  };

  std::int64_t count = 0;
  DType gradient = DType::f32;
  // Ranges that are summed apart and then added up in this order, so that the norm depends neither on where they lie
  // nor on which rank holds which. Empty: all of the gradient.
  std::vector<Piece> pieces = {};
};

// run() is sum(), then fold(). Between them ranks that hold different pieces add up their sums.
class GradientNorm : public OpOf<GradientNormDesc> {
 public:
  struct Args {
    const void* gradient = nullptr;       // (count)
    StepState* state = nullptr;           // on the device; norm is of gradients / scale
    const std::int64_t* valid = nullptr;  // (1) on the device: valid targets of all ranks; null: scale is loss_scale
    std::int64_t expected = 1;            // targets that the gradients were scaled for
    void* workspace = nullptr;
  };
  void run(Stream& stream, const Args& args) {
    sum(stream, args);
    fold(stream, args);
  }
  // Writes sums of squares, f64, to the start of the workspace: zero for pieces that are not held.
  virtual void sum(Stream&, const Args&) = 0;
  virtual void fold(Stream&, const Args&) = 0;
  virtual std::int64_t sums() const = 0;
};

// The desc's pieces, or all of its elements, cut into blocks, each of which is summed by itself.
std::vector<GradientNormDesc::Piece> square_sum_blocks(const GradientNormDesc& desc);

// GradientNorm's scale (above); 0 without a valid target. Used by devices that share the host's memory.
inline float gradients_scale(const StepState& state, const GradientNorm::Args& args) {
  if (!args.valid) return state.loss_scale;
  return static_cast<float>(static_cast<double>(state.loss_scale) *
                            (static_cast<double>(*args.valid) / static_cast<double>(args.expected)));
}

}  // namespace assay::ops
