// Which of cuDNN's plans does a convolution: candidates by its heuristics, and the fastest of them by trial.
#pragma once

#include "harness/device/device.h"
#include "workloads/ops/conv.h"
#include "workloads/ops/cuda/cudnn/convolution.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace assay::ops {

// A plan and the graph that it runs, which may have more channels than the convolution asked for: those are zero.
struct ConvChoice {
  cudnn::ConvolutionGraph graph;
  std::shared_ptr<cudnn::Plan> plan;
  bool tried = true;  // false: the heuristics' first, for want of memory to try it beside others
};

struct ConvCandidates {
  std::vector<ConvChoice> choices;
  std::string why_none;
};

// Graphs of the convolution itself and, where tensor cores ask for whole groups of channels, of padded ones; gradients
// of weights in the type asked for, or rounded to that of x where cuDNN has no other.
ConvCandidates conv_candidates(const ConvDesc& desc, cudnn::ConvolutionPass pass);

// Seconds of `run` on the stream: the least of three rounds, after one that is not timed.
double trial_seconds(Device& device, Stream& stream, const std::function<void()>& run);

// The choice made before in this process for the descriptor, or null.
const ConvChoice* known_choice(const ConvDesc& desc, cudnn::ConvolutionPass pass);
void remember_choice(const ConvDesc& desc, cudnn::ConvolutionPass pass, ConvChoice choice);

}  // namespace assay::ops
