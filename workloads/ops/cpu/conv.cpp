// Chooses between our own algorithms and oneDNN's kernels.
#include "workloads/ops/cpu/conv.h"

#include "workloads/ops/cpu/conv_gradient.h"
#include "workloads/ops/cpu/dnnl_conv.h"
#include "workloads/ops/cpu/winograd.h"

namespace assay::ops {

namespace {

bool by_winograd(const ConvDesc& d) { return !problem_of(d) && winograd_suits(d); }

// For the weights' gradient of a strided 1x1 convolution oneDNN copies the pixels into scratch in whole blocks of
// channels. With fewer channels than a block, threads overwrite each other's pixels and what follows the scratch: the
// gradient is wrong, and differs from run to run (uxlfoundation/oneDNN#6035).
bool overruns_in_dnnl(const ConvDesc& d) { return d.r == 1 && d.s == 1 && d.stride > 1 && d.c / d.groups < 16; }

}  // namespace

Made<ConvForward> make_conv_forward(const ConvDesc& d) {
  if (by_winograd(d)) return make_winograd_forward(d, make_dnnl_conv_forward(d));
  return make_dnnl_conv_forward(d);
}

Made<ConvBackwardData> make_conv_backward_data(const ConvDesc& d) {
  if (by_winograd(d)) return make_winograd_backward_data(d, make_dnnl_conv_backward_data(d));
  return make_dnnl_conv_backward_data(d);
}

Made<ConvBackwardWeights> make_conv_backward_weights(const ConvDesc& d) {
  if (by_winograd(d)) return make_winograd_backward_weights(d, make_dnnl_conv_backward_weights(d));
  if (!problem_of(d) && packed_gradient_supports(d) && (packed_gradient_suits(d) || overruns_in_dnnl(d)))
    return make_packed_gradient(d);
  if (overruns_in_dnnl(d))
    return Made<ConvBackwardWeights>::no("no correct kernel for the weights' gradient of this strided 1x1 convolution");
  return make_dnnl_conv_backward_weights(d);
}

}  // namespace assay::ops
