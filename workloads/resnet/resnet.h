// ResNet (He et al. 2016), version 1.5: a bottleneck's stride is in its 3 x 3 convolution.
#pragma once

#include "workloads/nn/model.h"
#include "workloads/resnet/config.h"

#include <memory>

namespace assay::resnet {

// Parameters, in the order of the forward pass: stem.conv.weight, stem.norm.*; for each stage.S.block.B conv1.weight,
// norm1.*, conv2.weight, norm2.*, (conv3.weight, norm3.*) and, if the shape changes, downsample.conv.weight and
// downsample.norm.*; classifier.*. Convolutions are (K, R, S, C).
std::unique_ptr<nn::Model> make_resnet(const Config& config);

}  // namespace assay::resnet
