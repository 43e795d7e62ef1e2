// Graphs of descriptors, and graphs as text: the keys of choices that later processes read. Each names every member of
// its graph, by a structured binding, which does not compile if a member is missing.
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/pool.h"

#include <fmt/format.h>

#include <type_traits>

namespace assay::ops {

namespace {

template <typename T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, DType>)
    return std::string(name_of(value));
  else if constexpr (std::is_enum_v<T>)
    return fmt::format("{}", static_cast<int>(value));
  else
    return fmt::format("{}", value);
}

template <typename... T>
std::string words(std::string name, const T&... values) {
  ((name += " " + text_of(values)), ...);
  return name;
}

}  // namespace

std::string key_of(const PoolDesc& desc) {
  const auto& [kind, n, h, w, c, window_h, window_w, stride, padding, dtype] = desc;
  return words("pool", kind, n, h, w, c, window_h, window_w, stride, padding, dtype);
}

namespace cudnn {

std::string key_of(const ConvolutionGraph& graph) {
  const auto& [n, h, w, c, k, r, s, stride, padding, groups, dtype, pack_from, gradient, accumulate] =
      static_cast<const ConvDesc&>(graph);
  return words("convolution", graph.pass, n, h, w, c, k, r, s, stride, padding, groups, dtype, pack_from, gradient,
               accumulate);
}

std::string key_of(const AttentionGraph& graph) {
  const auto& [backward, batch, seq, heads, kv_heads, head_dim, q_stride, k_stride, v_stride, causal, lengths, scale,
               dtype] = graph;
  return words("attention", backward, batch, seq, heads, kv_heads, head_dim, q_stride, k_stride, v_stride, causal,
               lengths, scale, dtype);
}

std::string key_of(const BatchNormGraph& graph) {
  const auto& [rows, channels, dtype, relu, residual, training, epsilon, momentum] = graph;
  return words("batch_norm", rows, channels, dtype, relu, residual, training, epsilon, momentum);
}

std::string key_of(const BatchNormGradientGraph& graph) {
  const auto& [rows, channels, dtype, relu_and_residual, two_gradients] = graph;
  return words("batch_norm_gradient", rows, channels, dtype, relu_and_residual, two_gradients);
}

BatchNormGraph batch_norm_graph_of(const BatchNormDesc& d) {
  return {.rows = d.rows,
          .channels = d.channels,
          .dtype = d.dtype,
          .relu = d.relu,
          .residual = d.residual,
          .training = d.training,
          .epsilon = static_cast<float>(d.epsilon),
          .momentum = static_cast<float>(d.momentum)};
}

std::optional<BatchNormGradientGraph> batch_norm_gradient_graph_of(const BatchNormDesc& d) {
  const bool alone = !d.relu && !d.residual && !d.two_gradients, whole = d.relu && d.residual;
  if (!alone && !whole) return std::nullopt;
  return BatchNormGradientGraph{.rows = d.rows,
                                .channels = d.channels,
                                .dtype = d.dtype,
                                .relu_and_residual = whole,
                                .two_gradients = d.two_gradients};
}

}  // namespace cudnn

}  // namespace assay::ops
