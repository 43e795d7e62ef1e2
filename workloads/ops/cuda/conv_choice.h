// Chooses cuDNN's plan for a convolution: candidates from its heuristics, and the fastest of them in a trial.
#pragma once

#include "workloads/ops/conv.h"
#include "workloads/ops/cuda/cudnn/graphs.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay::ops {

// A plan and the graph that it runs, which may have more channels than the convolution: those are zero.
struct ConvChoice {
  cudnn::ConvolutionGraph graph;
  std::shared_ptr<cudnn::Plan> plan;
  bool tried = true;  // false: the heuristics' first; no memory to try others

  // Among the candidates for a convolution; empty if untried.
  std::string name() const;
};

struct ConvCandidates {
  std::vector<ConvChoice> choices;
  std::string why_none;
};

// Equal for descriptors that make no difference to cuDNN.
cudnn::ConvolutionGraph convolution_graph_of(const ConvDesc& desc, cudnn::ConvolutionPass pass);

// Plans for the convolution itself and, if tensor cores need whole groups of channels, for padded ones. Weight
// gradients have the requested type, or, if cuDNN has no such plan, are rounded to x's type. With a name, only the
// candidate of this name is built.
ConvCandidates conv_candidates(const ConvDesc& desc, cudnn::ConvolutionPass pass, const std::string& name = {},
                               std::size_t max_plans = cudnn::Limits().max_plans);

// An earlier choice for the descriptor, else the result of `search`, which returns nothing if no candidate runs.
std::optional<ConvChoice> find_choice(const Device& device, const ConvDesc& desc, cudnn::ConvolutionPass pass,
                                      const std::function<std::optional<ConvChoice>()>& search);

}  // namespace assay::ops
