// Candidates for convolutions by cuDNN.
#include "workloads/ops/cuda/conv_choice.h"

#include "workloads/ops/round_up.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay::ops {

namespace {

using cudnn::ConvolutionGraph;
using cudnn::ConvolutionPass;

// The graph, then padded ones that tensor cores may run faster, or without which cuDNN has no engine.
std::vector<ConvolutionGraph> variants(const ConvolutionGraph& graph) {
  std::vector<ConvolutionGraph> all = {graph};
  if (graph.groups > 1) return all;
  const bool half = size_of(graph.dtype) == 2;
  for (const std::int64_t granule : half ? std::vector<std::int64_t>{4, 8} : std::vector<std::int64_t>{4}) {
    ConvolutionGraph padded = graph;
    padded.c = round_up(graph.c, granule);
    padded.k = round_up(graph.k, granule);
    if (std::find(all.begin(), all.end(), padded) == all.end()) all.push_back(padded);
  }
  return all;
}

// Begins the description of each candidate that runs this graph.
std::string prefix_of(const ConvolutionGraph& graph) {
  return fmt::format("{} to {} channels, gradient {}: ", graph.c, graph.k, name_of(graph.gradient));
}

}  // namespace

// Equal for descriptors that make no difference to cuDNN.
ConvolutionGraph convolution_graph_of(const ConvDesc& d, ConvolutionPass pass) {
  ConvolutionGraph graph{d, pass};
  graph.pack_from = DType::f32;
  graph.accumulate = false;
  if (pass != ConvolutionPass::backward_weights) graph.gradient = d.dtype;
  return graph;
}

std::string ConvChoice::name() const { return tried ? prefix_of(graph) + plan->name() : std::string(); }

ConvCandidates conv_candidates(const ConvDesc& desc, ConvolutionPass pass, const std::string& name,
                               std::size_t max_plans) {
  cudnn::Limits limits{.max_plans = max_plans, .full_f32 = desc.dtype == DType::f32};
  ConvCandidates found;
  const auto add = [&](const ConvolutionGraph& requested) {
    for (const ConvolutionGraph& graph : variants(requested)) {
      if (limits.full_f32 && !found.choices.empty()) break;  // no tensor cores to pad for
      if (!name.empty()) {
        const std::string prefix = prefix_of(graph);
        if (!name.starts_with(prefix)) continue;
        limits.name = name.substr(prefix.size());
      }
      cudnn::Plans plans = cudnn::convolution_plans(graph, limits);
      if (found.why_none.empty()) found.why_none = plans.why_not;
      for (auto& plan : plans.plans) found.choices.push_back({graph, std::move(plan)});
    }
  };
  ConvolutionGraph graph = convolution_graph_of(desc, pass);
  add(graph);
  if (found.choices.empty() && graph.gradient != desc.dtype) {
    graph.gradient = desc.dtype;
    add(graph);
  }
  return found;
}

}  // namespace assay::ops
