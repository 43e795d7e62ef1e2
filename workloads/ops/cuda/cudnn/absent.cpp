// Replaces frontend.cpp if cuDNN was not found at build time.
#include "workloads/ops/cuda/cudnn/graphs.h"
#include "workloads/ops/cuda/cudnn/pool.h"

namespace assay::ops::cudnn {

std::string version() { return "no cuDNN"; }

std::string device_description() { throw Error("Assay was built without cuDNN"); }

Plans convolution_plans(const ConvolutionGraph&, const Limits&) { return {{}, "Assay was built without cuDNN"}; }

Plans attention_plans(const AttentionGraph&, const Limits&) { return {{}, "Assay was built without cuDNN"}; }

Plans batch_norm_forward_plans(const BatchNormGraph&, const Limits&) { return {{}, "Assay was built without cuDNN"}; }

Plans batch_norm_backward_plans(const BatchNormGradientGraph&, const Limits&) {
  return {{}, "Assay was built without cuDNN"};
}

Plans average_pool_plans(const PoolDesc&, const Limits&) { return {{}, "Assay was built without cuDNN"}; }

}  // namespace assay::ops::cudnn
