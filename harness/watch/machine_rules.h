// Rules of diagnosis that look at the machine below a job: its GPUs, their clocks, the nodes that its ranks run on.
#pragma once

#include "harness/watch/diagnosis.h"

#include <vector>

namespace assay::watch {

// Adds those that hold. Nothing without evidence: a job on CPUs has no rule about GPUs.
void add_machine_rules(const JobSteps& steps, const Surroundings& around, std::vector<Diagnosis>& found);

// Where a GPU may be too large for the job: what a smaller one must hold. Absent: it is not, or nobody knows.
std::optional<SmallerGpu> smaller_gpu(const GpuUse& gpus);

}  // namespace assay::watch
