// The memory of a training step: one allocation, cut into regions, and the gradients' own if ranks add them up.
#pragma once

#include "harness/comm/communicator.h"
#include "harness/device/device.h"
#include "workloads/nn/step_block.h"
#include "workloads/nn/step_plan.h"

#include <cstddef>
#include <cstdint>

namespace assay::nn {

// Arrays with one entry per tensor that is rounded to 8 bits, in the order of StepLayout::rounded.
struct ScalePlaces {
  float* amax = nullptr;
  float* scale = nullptr;
  float* inverse = nullptr;
  float* largest = nullptr;
  float* history = nullptr;  // (tensors, history length)
};

class StepMemory {
 public:
  // Throws Error with the planned bytes by term if they do not fit. Touches all of it, so that steps cause no page
  // faults; everything but the arena is zero. With several ranks, gradients are registered with their library if it
  // has such memory. `comm` must outlive this.
  StepMemory(const StepPlan& plan, Device& device, Communicator& comm, Stream& stream);

  std::byte* weights() const { return weights_; }
  std::byte* copies() const { return copies_; }  // the weights as layers read them; null if there are no copies
  std::byte* gradients() const { return gradients_; }
  bool gradients_are_registered() const { return registered_.data() != nullptr; }
  std::byte* moment(int which) const { return moments_[which]; }  // 0 or 1; null if there is none
  std::byte* running() const { return running_; }
  std::byte* arena() const { return arena_; }
  std::byte* inputs(std::int64_t micro_batch) const {
    return inputs_ + static_cast<std::size_t>(micro_batch) * input_bytes_;
  }
  const ScalePlaces& scales() const { return scales_; }
  StepBlock* block() const { return reinterpret_cast<StepBlock*>(block_); }

  // Addresses of a program's tensors for one micro-batch.
  Places places(const Program& program, std::int64_t micro_batch) const;

 private:
  Buffer buffer_;
  Buffer registered_;  // the gradients, or empty
  std::size_t input_bytes_ = 0;
  std::byte* weights_ = nullptr;
  std::byte* copies_ = nullptr;
  std::byte* gradients_ = nullptr;
  std::byte* moments_[2] = {nullptr, nullptr};
  std::byte* running_ = nullptr;
  std::byte* packed_ = nullptr;
  std::byte* constants_ = nullptr;
  std::byte* inputs_ = nullptr;
  std::byte* block_ = nullptr;
  ScalePlaces scales_;
  std::byte* arena_ = nullptr;
};

}  // namespace assay::nn
