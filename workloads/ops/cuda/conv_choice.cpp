// Remembers the choices of convolutions.
#include "workloads/ops/cuda/conv_choice.h"

#include "workloads/ops/cuda/known_choices.h"

namespace assay::ops {

std::optional<ConvChoice> find_choice(const Device& device, const ConvDesc& desc, cudnn::ConvolutionPass pass,
                                      const std::function<std::optional<ConvChoice>()>& search) {
  static auto& known = *new KnownChoices<cudnn::ConvolutionGraph, ConvChoice>;
  const auto named = [&](const std::string& name) -> std::optional<ConvChoice> {
    const std::vector<ConvChoice> choices = conv_candidates(desc, pass, name).choices;
    return choices.empty() ? std::nullopt : std::optional(choices[0]);
  };
  return known.find(device, convolution_graph_of(desc, pass), named, search);
}

}  // namespace assay::ops
