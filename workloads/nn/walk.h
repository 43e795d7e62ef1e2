// Runs a program: its instructions in order, and around them what ranks exchange.
#pragma once

#include "workloads/nn/step_collectives.h"
#include "workloads/nn/step_graph.h"

#include <functional>

namespace assay::nn {

struct Walk {
  PartClock* clock = nullptr;
  StepCollectives* collectives = nullptr;  // null on one rank
  bool first = true;                       // this is the first of a step's micro-batches
  bool last = true;
  bool reduce = false;  // gradients as they become ready and, with the last micro-batch, sums
  bool gather = true;   // divided weights; false only to measure what it costs: every slice is then the rank's own
  // Called after each instruction until it returns false, which ends the walk unless ranks gather during it.
  std::function<bool(const Instruction&, const Places&)> inspect = {};
};

void walk(const StepPlan& plan, const StepMemory& memory, const Program& program, std::int64_t micro_batch,
          const Walk& how, Stream& stream);

}  // namespace assay::nn
