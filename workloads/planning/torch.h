// The memory of a training step in PyTorch: eager autograd, AdamW or SGD by torch.optim, adapters by peft, DDP or
// FSDP2.
#pragma once

#include "workloads/architecture/architecture.h"
#include "workloads/planning/eager.h"
#include "workloads/planning/request.h"

#include <optional>
#include <string>

namespace assay::planning {

struct TorchMemory {
  double tensors = 0;                               // the most bytes of tensors at once
  Uses uses{};                                      // of them, then
  double reserved = 0;                              // by the model of the caching allocator
  double kept = 0;                                  // activations after the forward pass
  double forward = 0, backward = 0, optimizer = 0;  // the most bytes of tensors in each part of a step
};

// Why it cannot be planned so, with the nearest that can.
std::optional<std::string> torch_problem(const architecture::Architecture& model, const Step& step,
                                         const Layout& layout);

// Of each rank. Without zero=3 all is in the step's precision, parameters and moments too; zero=3 is FSDP2, a unit for
// each layer and one for the rest, which keeps parameters and moments in f32 and gathers in the step's precision.
// Adapters are in f32.
TorchMemory torch_memory(const architecture::Architecture& model, const Step& step, const Layout& layout);

}  // namespace assay::planning
