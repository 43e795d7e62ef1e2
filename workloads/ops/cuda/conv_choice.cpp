#include "workloads/ops/cuda/conv_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace assay::ops {

namespace {

using cudnn::ConvolutionGraph;
using cudnn::ConvolutionPass;

ConvolutionGraph graph_of(const ConvDesc& d, ConvolutionPass pass) {
  ConvolutionGraph graph{.pass = pass,
                         .n = d.n,
                         .h = d.h,
                         .w = d.w,
                         .c = d.c,
                         .k = d.k,
                         .r = d.r,
                         .s = d.s,
                         .stride = d.stride,
                         .padding = d.padding,
                         .groups = d.groups,
                         .dtype = d.dtype,
                         .gradient = d.dtype};
  if (pass == ConvolutionPass::backward_weights) graph.gradient = d.gradient;
  return graph;
}

std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to * to; }

// The graph, then those with more channels that tensor cores may do faster, or that cuDNN has engines for at all.
std::vector<ConvolutionGraph> variants(const ConvolutionGraph& graph) {
  std::vector<ConvolutionGraph> all = {graph};
  if (graph.groups > 1) return all;
  const bool half = size_of(graph.dtype) == 2;
  for (const std::int64_t granule : half ? std::vector<std::int64_t>{4, 8} : std::vector<std::int64_t>{4}) {
    ConvolutionGraph padded = graph;
    padded.c = rounded_up(graph.c, granule);
    padded.k = rounded_up(graph.k, granule);
    if (std::find(all.begin(), all.end(), padded) == all.end()) all.push_back(padded);
  }
  return all;
}

// Choices made in this process, by the graph as asked for.
struct Known {
  std::mutex mutex;
  std::map<ConvolutionGraph, ConvChoice> choices;
};
Known& known() {
  static Known value;
  return value;
}

}  // namespace

ConvCandidates conv_candidates(const ConvDesc& desc, ConvolutionPass pass) {
  const cudnn::Limits limits{.full_f32 = desc.dtype == DType::f32};
  ConvCandidates found;
  const auto add = [&](const ConvolutionGraph& asked) {
    for (const ConvolutionGraph& graph : variants(asked)) {
      if (limits.full_f32 && !found.choices.empty()) break;  // no tensor cores to pad for
      cudnn::Plans plans = cudnn::convolution_plans(graph, limits);
      if (found.why_none.empty()) found.why_none = plans.why_not;
      for (auto& plan : plans.plans) found.choices.push_back({graph, std::move(plan)});
    }
  };
  ConvolutionGraph graph = graph_of(desc, pass);
  add(graph);
  if (found.choices.empty() && graph.gradient != desc.dtype) {
    graph.gradient = desc.dtype;
    add(graph);
  }
  return found;
}

double trial_seconds(Device& device, Stream& stream, const std::function<void()>& run) {
  constexpr double enough = 200e-6;  // seconds of a round
  constexpr int most_runs = 20, rounds = 3;
  const auto start = device.make_event(), end = device.make_event();
  const auto timed = [&](int runs) {
    start->record(stream);
    for (int i = 0; i < runs; ++i) run();
    end->record(stream);
    end->synchronize();
    return end->seconds_since(*start) / runs;
  };
  run();
  const double once = timed(1);
  const int runs = once * most_runs > enough ? std::max(1, static_cast<int>(std::ceil(enough / once))) : most_runs;
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) least = std::min(least, timed(runs));
  return least;
}

const ConvChoice* known_choice(const ConvDesc& desc, ConvolutionPass pass) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().choices.find(graph_of(desc, pass));
  return found == known().choices.end() ? nullptr : &found->second;
}

void remember_choice(const ConvDesc& desc, ConvolutionPass pass, ConvChoice choice) {
  const std::lock_guard lock(known().mutex);
  known().choices.insert_or_assign(graph_of(desc, pass), std::move(choice));
}

}  // namespace assay::ops
