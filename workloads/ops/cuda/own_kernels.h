// Ops by our own kernels that compete with cuDNN's plans (own_or_cudnn.h).
#pragma once

#include "workloads/ops/batch_norm.h"
#include "workloads/ops/pool.h"

#include <memory>
#include <string>

namespace assay::ops {

// Batch norm and pooling by our own kernels, for descriptors of f32, bf16 and fp16.
std::unique_ptr<BatchNormForward> own_batch_norm_forward(Device& device, const BatchNormDesc& desc);
std::unique_ptr<BatchNormBackward> own_batch_norm_backward(Device& device, const BatchNormDesc& desc);
std::unique_ptr<PoolForward> own_pool_forward(Device& device, const PoolDesc& desc);
// Why our pooling kernels cannot run a descriptor; empty if they can.
std::string own_pool_problem(const PoolDesc& desc);

}  // namespace assay::ops
