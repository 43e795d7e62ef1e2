// Chooses between our own algorithms and oneDNN's kernels.
#include "workloads/ops/conv.h"
#include "workloads/ops/cpu/cpu_ops.h"

namespace assay::ops {

namespace {

// For the weights' gradient of a strided 1x1 convolution oneDNN copies the pixels into scratch in whole blocks of
// channels. With fewer channels than a block, threads overwrite each other's pixels and what follows the scratch: the
// gradient is wrong, and differs from run to run (uxlfoundation/oneDNN#6035).
bool overruns_in_dnnl(const ConvDesc& d) { return d.r == 1 && d.s == 1 && d.stride > 1 && d.c / d.groups < 16; }

}  // namespace

template <>
Made<ConvForward> make_cpu(const ConvDesc& d) {
  if (winograd_suits(d)) return make_winograd_forward(d, make_dnnl_conv_forward(d));
  return make_dnnl_conv_forward(d);
}

template <>
Made<ConvBackwardData> make_cpu(const ConvDesc& d) {
  if (winograd_suits(d)) return make_winograd_backward_data(d, make_dnnl_conv_backward_data(d));
  return make_dnnl_conv_backward_data(d);
}

template <>
Made<ConvBackwardWeights> make_cpu(const ConvDesc& d) {
  if (winograd_suits(d)) return make_winograd_backward_weights(d, make_dnnl_conv_backward_weights(d));
  if (packed_gradient_supports(d) && (packed_gradient_suits(d) || overruns_in_dnnl(d))) return make_packed_gradient(d);
  if (overruns_in_dnnl(d))
    return Made<ConvBackwardWeights>::no("no correct kernel for the weights' gradient of this strided 1x1 convolution");
  return make_dnnl_conv_backward_weights(d);
}

}  // namespace assay::ops
