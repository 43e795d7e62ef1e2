// Chooses between our own algorithms and oneDNN's kernels.
#include "workloads/ops/cpu/conv.h"

#include "workloads/ops/cpu/conv_gradient.h"
#include "workloads/ops/cpu/dnnl_conv.h"
#include "workloads/ops/cpu/winograd.h"

namespace assay::ops {

namespace {

bool by_winograd(const ConvDesc& d) { return !problem_of(d) && winograd_suits(d); }

}  // namespace

Made<ConvForward> make_conv_forward(const ConvDesc& d) {
  if (by_winograd(d)) return make_winograd_forward(d);
  return make_dnnl_conv_forward(d);
}

Made<ConvBackwardData> make_conv_backward_data(const ConvDesc& d) {
  if (by_winograd(d)) return make_winograd_backward_data(d);
  return make_dnnl_conv_backward_data(d);
}

Made<ConvBackwardWeights> make_conv_backward_weights(const ConvDesc& d) {
  if (by_winograd(d)) return make_winograd_backward_weights(d);
  if (!problem_of(d) && packed_gradient_suits(d)) return make_packed_gradient(d);
  return make_dnnl_conv_backward_weights(d);
}

}  // namespace assay::ops
