// Which of cuDNN's plans does a convolution: candidates by its heuristics, and the fastest of them by trial.
#pragma once

#include "workloads/ops/conv.h"
#include "workloads/ops/cuda/cudnn/convolution.h"

#include <memory>
#include <optional>
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

// The choice made before in this process for the descriptor.
std::optional<ConvChoice> known_choice(const ConvDesc& desc, cudnn::ConvolutionPass pass);
void remember_choice(const ConvDesc& desc, cudnn::ConvolutionPass pass, ConvChoice choice);

}  // namespace assay::ops
