// A flat list of instructions, made once by a Builder and then run for every micro-batch.
#pragma once

#include "harness/device/device.h"
#include "workloads/nn/parameter_layout.h"
#include "workloads/nn/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace assay::nn {

enum class Phase : std::uint8_t { forward, backward };

// One op (or a copy); its operands decide lifetimes.
struct Instruction {
  std::size_t scope = 0;  // index into Program::scopes: the layer's name in spans and probes
  Phase phase = Phase::forward;
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;  // in-place operands are in both
  std::function<void(Stream&, const Places&)> run;
  std::int32_t rounds = -1;  // index into StepLayout::rounded, if this rounds a tensor to 8 bits
};

// The part of a program in which a divided bucket is whole in the arena: weights that were gathered, or gradients until
// they are reduced.
struct Window {
  std::size_t bucket = 0;
  Array array = Array::masters;
  // Instructions: uses are in [first, last], and the memory is taken in [begin, end]. A gather is queued before `begin`
  // and awaited before `first`; a reduction is queued after `last` and awaited by `end`.
  std::size_t begin = 0, first = 0, last = 0, end = 0;
  std::size_t bytes = 0;
  std::size_t offset = 0;  // in the arena
  bool clear = false;      // before `first`

  std::int32_t slot() const { return slot_of(bucket, array); }
  static std::int32_t slot_of(std::size_t bucket, Array array) {
    return static_cast<std::int32_t>(bucket * array_kinds + static_cast<std::size_t>(array));
  }
};

struct Program {
  std::vector<TensorInfo> tensors;
  std::vector<Instruction> instructions;
  std::vector<std::string> scopes;
  // For each parameter, one past the last instruction that adds to its gradient; 0 if none does.
  std::vector<std::size_t> gradient_ready;
  // One past the last instruction of the forward phase, after which the loss sums are known.
  std::size_t forward_done = 0;
  std::vector<Window> gathers, reductions;  // in order of `first`, of `last`
  std::size_t arena_bytes = 0;
  // Scratch, packed weights and windows among the bytes alive at the peak.
  std::size_t workspace_at_peak = 0;
  std::size_t packed_at_peak = 0;
  std::size_t windows_at_peak = 0;
};

}  // namespace assay::nn
