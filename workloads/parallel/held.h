// How the ranks of a layout hold a model, and what each does in a step.
#pragma once

#include "workloads/parallel/layout.h"

#include <cstdint>
#include <string>

namespace assay::parallel {

// What one rank does in one optimizer step.
struct Work {
  double items = 0;  // tokens or images
  std::int64_t seq = 0;
  double parameters = 0;  // of the model
  double flops = 0;       // of the model, without recomputation
  double bytes = 0;       // that memory must move at least
  double exchanged = 0;   // bytes that the rank must send at least
  std::string precision;
};

struct Held {
  Layout layout;
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  std::string checkpointing;
  std::uint64_t total_bytes = 0;  // of each rank
  bool fits = false;              // else this is the step that needs the least memory
  Work work;
};

}  // namespace assay::parallel
