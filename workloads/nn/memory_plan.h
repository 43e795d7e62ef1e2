// Planned memory of a training step by purpose, known before anything is allocated.
#pragma once

#include <cstdint>
#include <string>

namespace assay::nn {

struct MemoryPlan {
  std::uint64_t weights = 0;  // masters, packed forms, running statistics, tables
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;      // moments
  std::uint64_t activations = 0;    // the inputs, and the arena's peak less what is counted elsewhere
  std::uint64_t workspace = 0;      // scratch of the ops that run at the peak
  std::uint64_t communication = 0;  // buffers of ranks that divide state and gather and reduce it
  std::uint64_t total() const { return weights + gradients + optimizer + activations + workspace + communication; }

  // The plan of steps that are allocated together.
  MemoryPlan& operator+=(const MemoryPlan& other) {
    weights += other.weights;
    gradients += other.gradients;
    optimizer += other.optimizer;
    activations += other.activations;
    workspace += other.workspace;
    communication += other.communication;
    return *this;
  }

  // "3.1 GiB: weights 475 MiB, gradients 475 MiB, optimizer 949 MiB, activations 1.2 GiB, workspace 12 MiB"
  std::string text() const;
};

}  // namespace assay::nn
