// Attention on GPUs: cuDNN's fused kernels if possible, else products and our own softmax.
#include "workloads/ops/attention.h"

#include "workloads/ops/cuda/attention_ways.h"
#include "workloads/ops/cuda/cuda_ops.h"

#include <fmt/format.h>

namespace assay::ops {

namespace {

std::string architecture_of(const Device& device) { return fmt::format("sm_{}", device.info().compute_capability); }

// cuDNN's reason may be a page long.
std::string shortened(const std::string& reason) {
  constexpr std::size_t max_length = 160;
  const std::string line = reason.substr(0, reason.find('\n'));
  return line.size() <= max_length ? line : line.substr(0, max_length) + "...";
}

}  // namespace

template <>
Made<AttentionForward> make_cuda(Device& device, const AttentionDesc& desc) {
  Made<AttentionForward> fused = make_cudnn_attention_forward(device, desc, architecture_of(device));
  if (fused) return fused;
  return make_composite_attention_forward(desc, architecture_of(device), shortened(fused.reason()));
}

template <>
Made<AttentionBackward> make_cuda(Device& device, const AttentionDesc& desc) {
  Made<AttentionBackward> fused = make_cudnn_attention_backward(device, desc, architecture_of(device));
  if (fused) return fused;
  return make_composite_attention_backward(desc, architecture_of(device), shortened(fused.reason()));
}

}  // namespace assay::ops
