// The memory of a training step on each rank, by formulas.
#pragma once

#include "workloads/planning/weights.h"

#include <cstdint>
#include <vector>

namespace assay::planning {

struct Terms {
  double weights = 0;  // masters, copies in the step's precision, frozen weights
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;    // what the backward pass needs
  double workspace = 0;      // of the layer, or the block of logits, that is computed
  double communication = 0;  // what ZeRO gathers and reduces at once, or offload brings
  double allocator = 0;      // what PyTorch's caching allocator reserves beyond tensors

  double total() const { return weights + gradients + optimizer + activations + workspace + communication + allocator; }
};

struct StageMemory {
  Stage stage;
  Terms terms;      // of each rank of the stage
  double host = 0;  // bytes in the host's memory that each rank has offloaded
};

// Of each stage. `device_bytes`: a GPU's memory, by which blocks of logits are chosen as Assay's own step does; 0:
// unknown.
std::vector<StageMemory> memory_of(const architecture::Architecture& model, const Step& step, const Layout& layout,
                                   std::uint64_t device_bytes);
double largest(const std::vector<StageMemory>& stages);

// Bytes of logits and their gradient beyond the blocks: what a loss that is not fused keeps of all tokens at once.
double whole_logits(const architecture::Architecture& model, const Step& step, const Layout& layout,
                    std::uint64_t device_bytes);

}  // namespace assay::planning
