// A flat list of instructions, made once by a Builder and then walked at every micro-batch.
#pragma once

#include "harness/device/device.h"
#include "workloads/nn/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace assay::nn {

enum class Phase : std::uint8_t { forward, backward };

// One op run (or a copy): what it touches decides lifetimes.
struct Instruction {
  std::size_t scope = 0;  // index into Program::scopes: the layer, as spans and probes name it
  Phase phase = Phase::forward;
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;  // in-place operands stand in both
  std::function<void(Stream&, const Places&)> run;
  std::int32_t rounds = -1;  // a tensor to 8 bits: which of StepLayout::rounded
};

struct Program {
  std::vector<TensorInfo> tensors;
  std::vector<Instruction> instructions;
  std::vector<std::string> scopes;
  // One beyond the last instruction that adds to a parameter's gradient; 0 where none does.
  std::vector<std::size_t> gradient_ready;
  // One beyond the last instruction of the forward phase: the sums of the loss are known.
  std::size_t forward_done = 0;
  std::size_t arena_bytes = 0;
  // Of the bytes alive where most are: scratch, and packed weights.
  std::size_t workspace_at_peak = 0;
  std::size_t packed_at_peak = 0;
};

}  // namespace assay::nn
