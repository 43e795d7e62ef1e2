// The settings of an optimizer step.
#pragma once

#include "harness/device/device.h"
#include "workloads/nn/model.h"
#include "workloads/nn/precision.h"
#include "workloads/ops/optimizer.h"
#include "workloads/parallel/layout.h"

#include <cstdint>

namespace assay::nn {

// How much the backward pass computes again instead of keeping: nothing; outputs of norms and activations, which are
// cheap; or all of a block but its input.
enum class Checkpointing { none, selective, full };

struct StepOptions {
  Precision precision;
  BatchShape batch;             // shape of one micro-batch
  std::int64_t accumulate = 1;  // micro-batches per step
  Checkpointing checkpointing = Checkpointing::none;
  ops::OptimizerKind optimizer = ops::OptimizerKind::adamw;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;
  double weight_decay = 0;               // for the parameters with ParameterSpec::decay
  double smoothing = 0;                  // label smoothing
  double max_norm = 0;                   // 0: gradients are not clipped
  std::int64_t bucket_bytes = 25 << 20;  // gradients reduced at once
  bool evaluation = true;                // false: no evaluate(), so its ops are not made
  std::int64_t logits_bytes = 0;         // logits that an LM head holds at once; 0: chosen by the device's memory
  parallel::Layout layout = {};          // dp is the number of ranks
};

// The properties of a device on which the memory of a step depends.
struct DeviceProfile {
  DeviceKind kind = DeviceKind::cpu;
  std::uint64_t memory_bytes = 0;  // a GPU's memory; 0: unknown
};
DeviceProfile profile_of(const Device& device);

// Fills in the defaults that depend on the device.
StepOptions for_device(StepOptions options, const DeviceProfile& device);

}  // namespace assay::nn
